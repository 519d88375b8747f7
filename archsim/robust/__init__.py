"""Networks whose stored weights have bit errors.

model      a trained network as codes, in a file: `RobustModel`, `read_model`, `shipped`
random_flips   errors drawn anew each time, as training sees them
"""
