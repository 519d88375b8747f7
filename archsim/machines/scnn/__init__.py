"""Sparse cores: layers mapped to a grid of PEs, their lists, and when everything happens.

`docs/contracts/scnn.md`, `rtl/scnn.py`; `dense*.py` are the dense cores that are measured beside.
"""
