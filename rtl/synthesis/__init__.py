"""Designs on cell libraries: area, critical path, and energy of what the RTL becomes.

synthesize       a design, its cells, and the result (`Synthesis`, in `result`; tables prints it)
yosys            Verilog to cells; buffers adds what drives large fan-out; cache keeps answers
area             modules, classes, memories; timing the slowest path
liberty          cell libraries (liberty_tables: what they tabulate); cells what synthesis needs
power            energy of a layer in the netlist, by module (power_table prints it)
gate_simulation  the netlist run gate by gate; flat_netlist, gates, cell_models are what it runs
activity         toggles of the RTL by module, from Verilator's SAIF (saif)
characterize     building blocks (blocks, control) measured: a coefficient file
"""
