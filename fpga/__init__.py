"""Designs on an FPGA: resources and clock.  A contents page.

| to see | open |
|---|---|
| a unit mapped, wrapped, placed and routed | `fpga/place.py` |
| the chips | `fpga/devices.py` |
| the registers around a unit with more ports than pins | `fpga/wrapper.py` |
| multipliers with registers, adders that begin anew, as cells of a family | `fpga/own_cells.py` |
| what a netlist takes | `fpga/cells.py`, and whether it fits `fpga/fit.py` |
| the placer, and what it reports | `fpga/nextpnr.py` |
| the boards, and a bitstream for one | `fpga/boards.py`, `fpga/board_top.py`, `fpga/build.py` |
| the largest design for a board, a clock before placing | `fpga/largest.py`, `fpga/estimate.py` |
| where every cell lies, as a picture | `fpga/places.py`, `fpga/floor_plan.py` |
| a host that speaks to a core on a board | `fpga/host/` |
| what tools and code an answer depends on | `fpga/tools.py` |
| the verb `archsim fpga` | `fpga/cli.py`, `fpga/board_cli.py`, `fpga/fit_cli.py` |
"""
