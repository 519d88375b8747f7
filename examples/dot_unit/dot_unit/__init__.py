"""A machine for archsim, in a package of its own: one dot product of L lanes a cycle.

`design` is the record, `model` what happens when, `core` the same in hardware, `cases` the proof;
the cycle contract is `contract.md` beside this package.
"""
