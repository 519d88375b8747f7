"""Memories whose cells fail at low voltage (docs/low-voltage.md).

fault_map   which cells of a chip fail, at which rate, and how: a value
bank        banks of such cells, where a machine keeps biases
cell_hash   the function of (chip, address, bit) that decides it, as the hardware computes it
measured    maps from files, whose cells were measured
laws        rates that differ from column to column
injection   masks of many words at once, compiled
"""
