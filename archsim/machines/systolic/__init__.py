"""Systolic arrays: `docs/contracts/systolic.md`, `rtl/systolic.py`."""
