"""Tensor cores, with integers or floats: `docs/contracts/tensorcore.md`, `rtl/tensorcore.py`."""
