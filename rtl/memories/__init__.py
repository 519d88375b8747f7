"""The hardware of the kinds of memory, in rooms named as in `archsim.memories`.

Found through the entry-point group `archsim.memory_rtl`; what each answers: `rtl.core.memory`.
"""
