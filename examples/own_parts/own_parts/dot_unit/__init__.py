"""A machine: one dot product of L lanes a cycle, its operands from off-chip memory.

`design` is the record, `model` what happens when, `core` the same in hardware, `cases` the proof;
the cycle contract is `contract.md`.
"""
