"""Cycle-level simulation of deep-learning accelerators.

from archsim import Systolic, simulate
from workloads import builtin

result = simulate(Systolic(rows=16, columns=16), builtin("resnet50"))
"""

from archsim.designs.systolic import CLOUD_128, EDGE_16, TPU_V1, Systolic
from archsim.errors import InputError
from archsim.memory import OffChip, Plain
from archsim.result import LayerResult, NetworkResult
from archsim.simulate import simulate, simulate_many
from archsim.version import VERSION

__version__ = VERSION

__all__ = [
    "CLOUD_128",
    "EDGE_16",
    "TPU_V1",
    "InputError",
    "LayerResult",
    "NetworkResult",
    "OffChip",
    "Plain",
    "Systolic",
    "__version__",
    "simulate",
    "simulate_many",
]
