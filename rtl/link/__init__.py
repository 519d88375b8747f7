"""A core behind a byte link, for boards without a bus.  A contents page.

| to see | open |
|---|---|
| what crosses the link, byte by byte | `rtl/link/frames.py` |
| what the core does with a request | `rtl/link/link_core.py` |
| frames from bytes, and bytes from frames | `rtl/link/receiver.py`, `rtl/link/sender.py` |
| bytes on a wire | `rtl/link/uart.py` |
"""
