"""A stream of values in as many bits as they need (docs/contracts/compressed-stream.md).

stream       the record: sizes, latencies, what it answers
lists        what lists take of it, exactly, from their values
cells        values as its SRAMs hold them, and back
lists_read   what is read of lists where cells fail, or there is no room for them
content_kernels  that, compiled
components   its hardware, to be priced
"""
