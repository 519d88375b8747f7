"""Rooms of the kinds of memory that store words in another form than as they are.

boveda          a scratchpad of values in as many bits as they need
boveda_stream   a stream of such values

Each answers what `archsim.memory.seam` asks, and is found by name through the entry-point group
`archsim.memories`; its hardware stands in the room of the same name in `rtl.memories`.
"""
