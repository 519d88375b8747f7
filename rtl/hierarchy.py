"""Modules that a design repeats: in the simulator plain sub-modules, in Verilog one shared module.

Amaranth elaborates and emits every sub-module anew, so that a 32 × 32 array would print 1,024
copies of its PE.  While a `Library` is open, `place` puts an instance of a shared module instead,
and the library remembers which modules to print once beside the design.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import wiring


class Library:
    """The shared modules of one emission, by name."""

    def __init__(self) -> None:
        self.modules: dict[str, wiring.Component] = {}


_library: ContextVar[Library | None] = ContextVar("library", default=None)


@contextmanager
def sharing() -> Iterator[Library]:
    """Emit repeated modules once; yields the library that collects them."""
    library = Library()
    token = _library.set(library)
    try:
        yield library
    finally:
        _library.reset(token)


def place(m: Module, name: str, component: wiring.Component, module_name: str) -> None:
    """Add `component`, whose ports are plain signals in the sync domain, to `m` under `name`.

    module_name must tell apart components that differ.
    """
    library = _library.get()
    if library is None:
        m.submodules[name] = component
        return
    library.modules.setdefault(module_name, component)
    ports: dict[str, object] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
    for port, member in component.signature.members.items():
        prefix = "i" if member.flow == wiring.In else "o"
        ports[f"{prefix}_{port}"] = getattr(component, port)
    m.submodules[name] = Instance(module_name, **ports)
