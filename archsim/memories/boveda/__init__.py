"""A scratchpad of values in as many bits as they need (docs/contracts/compressed-memory.md).

scratchpad   the record: sizes, latencies, what it answers
store        it together with the words that a core keeps in it
tiles        what tiles take of it, exactly, from their values
widths       widths of the groups in the words of tiles
places       where words lie, and the rows that weights read
ifmap_walk   the rows that an ifmap reads
rows         how often banks are read and written
cells        words as its SRAMs hold them, and back
components   its hardware, to be priced
"""
