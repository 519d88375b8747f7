"""A host's side of a core behind a byte link.  A contents page.

| to see | open |
|---|---|
| requests and answers, said again until they arrive | `fpga/host/session.py` |
| layers and whole networks through the core, compared with the model | `fpga/host/network.py` |
| a board that is simulated | `rtl/benches/byte_board.py` |
"""
