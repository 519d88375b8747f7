"""Cycle-level simulation of deep-learning accelerators.

>>> from dataclasses import replace
>>> from archsim import EDGE_16, simulate
>>> result = simulate("edge-16", "alexnet")
>>> result.cycles == sum(layer.cycles for layer in result.layers)
True
>>> simulate(replace(EDGE_16, rows=32, columns=32), "alexnet").cycles < result.cycles
True

Designs and networks are given as they are, or by name: `archsim list designs`, `list workloads`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from archsim.version import VERSION

if TYPE_CHECKING:
    from archsim.errors import InputError
    from archsim.evaluate import Evaluations, evaluate_many
    from archsim.machines.systolic.design import CLOUD_128, EDGE_16, TPU_V1, Systolic
    from archsim.memory import OffChip, Plain
    from archsim.result import LayerResult, NetworkResult
    from archsim.simulate import simulate, simulate_many

__version__ = VERSION

_HOMES = {
    "CLOUD_128": "machines.systolic.design",
    "EDGE_16": "machines.systolic.design",
    "Evaluations": "evaluate",
    "TPU_V1": "machines.systolic.design",
    "InputError": "errors",
    "LayerResult": "result",
    "NetworkResult": "result",
    "OffChip": "memory",
    "Plain": "memory",
    "Systolic": "machines.systolic.design",
    "evaluate_many": "evaluate",
    "simulate": "simulate",
    "simulate_many": "simulate",
}
"""Where each name is from: modules are imported when a name of theirs is asked for."""

__all__ = [
    "CLOUD_128",
    "EDGE_16",
    "TPU_V1",
    "Evaluations",
    "InputError",
    "LayerResult",
    "NetworkResult",
    "OffChip",
    "Plain",
    "Systolic",
    "__version__",
    "evaluate_many",
    "simulate",
    "simulate_many",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'archsim' has no attribute {name!r}")
    return getattr(import_module(f"archsim.{_HOMES[name]}"), name)


class _Package(ModuleType):
    """`archsim.simulate` is the function, whoever imports the module of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


def _refuse_strangers() -> None:
    """Raises `ImportError` where a folder of the user's hides one of our packages."""
    ours = Path(__file__).parents[1]
    for name in ("workloads", "energy_models"):
        spec = find_spec(name)
        places = [] if spec is None else list(spec.submodule_search_locations or ())
        if ours / name not in map(Path, places):
            where = spec.origin if spec is not None and not places else ", ".join(places)
            raise ImportError(
                f"{where or name} is not archsim's package {name}: it lies in the folder that "
                f"Python was started in, or beside the script; start Python with -P, or rename it"
            )


sys.modules[__name__].__class__ = _Package
_refuse_strangers()
