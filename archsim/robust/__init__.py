"""Networks whose stored weights have bit errors, and machines whose memories have.

| to see | open |
|---|---|
| a trained network as codes, in a file | `model.py` (`RobustModel`, `shipped`) |
| its weights on chips, how often it errs | `chips.py`, `evaluate.py`, kept by `measured.py` |
| on a machine | `on_machine.py`; beside the array `between_layers.py`, `vector_unit.py` |
| memories of a machine at voltages | `placed.py`, `low_voltage.py`, kept by `machine_points.py` |
| errors drawn anew each time, as training sees them | `random_flips.py` |
"""
