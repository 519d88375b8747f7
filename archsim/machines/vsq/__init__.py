"""Vector MACs with per-vector scales: `docs/contracts/vsq.md`, `rtl/vsq.py`."""
