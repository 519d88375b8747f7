"""Kernels: functions that are compiled once a machine, by numba, and run without it.

kernel    the decorators, and what is called
closure   what a kernel is made of: the parts it calls, the constants it reads; its key
spelling  arguments as text, as words of a call, and back
lowering  numba's passes, without what kernels never need
build     from Python to an object file, by numba and LLVM
store     object files, kept in the user's cache folder
ahead     the same by a second process, of what is expected
native    an object file in memory, and its call
"""

from archsim.kernels.kernel import Kernel, announce_to, inlined, kernel, not_compiled
from archsim.kernels.store import CacheWarning, kernel_folder

__all__ = [
    "CacheWarning",
    "Kernel",
    "announce_to",
    "inlined",
    "kernel",
    "kernel_folder",
    "not_compiled",
]
