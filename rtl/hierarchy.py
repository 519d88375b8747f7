"""Modules that a design repeats: in the simulator plain sub-modules, in Verilog one shared module.

Amaranth elaborates and emits every sub-module anew, so that a 32 × 32 array would print 1,024
copies of its PE.  While a `Library` is open, `place` converts each different component once and
puts instances of it instead.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

# The stubs leave rtlil out.
from amaranth.back import rtlil  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Value
from amaranth.lib import data, wiring

_INPUT = re.compile(r"^\s*wire (?:width \d+ )?(?:signed )?input \d+ +\\(\S+)$", re.MULTILINE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, kw_only=True)
class VerilogModule:
    """A ready-made Verilog module that stands for a component when emitted.

    Clocked by `clk`; with `resets` it has a synchronous reset `rst` too.  Modules of one name have
    one source.
    """

    name: str
    source: str
    signature: wiring.Signature
    parameters: dict[str, int] = field(default_factory=dict)
    resets: bool = False

    def __post_init__(self) -> None:
        """Raises `ValueError` for a reset that nothing would drive, or that is not there."""
        if ("input rst" in self.source) != self.resets:
            raise ValueError(f"{self.name}: resets must be {not self.resets}, as its source is")


@dataclass(frozen=True, kw_only=True)
class _Shared:
    """One shared module: its name, ports, the inputs it really has, and its parameters."""

    name: str
    signature: wiring.Signature
    inputs: frozenset[str]
    parameters: dict[str, int]


class Library:
    """The shared modules of one emission, by name: RTLIL texts, or ready-made Verilog sources."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        self.headings: dict[str, str] = {}
        self._known: dict[tuple[Any, ...], _Shared] = {}

    def module(self, kind: Any, parameters: dict[str, Any]) -> _Shared:
        """The shared module for a component with these parameters, converted at first use.

        A kind with `verilog(**parameters)` brings its module ready-made.
        """
        key = (kind, *sorted(parameters.items()))
        if key not in self._known:
            ready_made = hasattr(kind, "verilog")
            make = self._ready_made if ready_made else self._converted
            self._known[key] = make(kind, parameters)
        return self._known[key]

    def _ready_made(self, kind: Any, parameters: dict[str, Any]) -> _Shared:
        module: VerilogModule = kind.verilog(**parameters)
        self.sources[module.name] = module.source
        return _Shared(
            name=module.name,
            signature=module.signature,
            inputs=frozenset({"clk", "rst"} if module.resets else {"clk"}),
            parameters=module.parameters,
        )

    def _converted(self, kind: Any, parameters: dict[str, Any]) -> _Shared:
        component: wiring.Component = kind(**parameters)
        name = self._free_name(kind)
        self.texts[name] = ""
        self.texts[name] = rtlil.convert(component, name=name, emit_src=False)
        listed = (f"{parameter}={value}" for parameter, value in parameters.items())
        self.headings[name] = f"{kind.__name__}({', '.join(listed)})"
        inputs = frozenset(_INPUT.findall(self.texts[name]))
        return _Shared(name=name, signature=component.signature, inputs=inputs, parameters={})

    def _free_name(self, kind: type[wiring.Component]) -> str:
        base = _CAMEL.sub("_", kind.__name__).lower()
        number = sum(re.fullmatch(rf"{base}(_\d+)?", name) is not None for name in self.texts)
        return base if number == 0 else f"{base}_{number + 1}"


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


def members_of(unit: type[wiring.Component], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The ports of a component that is placed elsewhere, by name."""
    made: Any = unit(**parameters)
    made._MustUse__silence = True  # made for its ports only
    return dict(made.signature.members.items())


def place(
    m: Module,
    name: str,
    kind: type[wiring.Component],
    given: Mapping[str, Value | data.View] | None = None,
    /,
    **parameters: Any,
) -> Any:
    """Add `kind(**parameters)` to `m` under `name`; returns what has its ports.

    given: what some of its inputs are, by name, of their widths.  An instance of a shared module
    takes them as they are: a wide input that all of many instances have is no wire of each.
    The component works in the sync domain; its parameters can be compared and hashed.
    """
    library, bound = _library.get(), given or {}
    if library is None:
        component: Any = kind(**parameters)
        m.submodules[name] = component
        m.d.comb += [getattr(component, port).eq(value) for port, value in bound.items()]
        return component
    shared = library.module(kind, parameters)
    interface: Any = shared.signature.create(path=(name,))
    ports: dict[str, Any] = {f"p_{key}": value for key, value in shared.parameters.items()}
    if "clk" in shared.inputs:  # a delay of no cycles has no clock
        ports["i_clk"] = ClockSignal()
    if "rst" in shared.inputs:
        ports["i_rst"] = ResetSignal()
    flattened: Any = shared.signature.flatten(interface)  # the stubs say Flow for Member
    for path, member, value in flattened:
        prefix = "i" if member.flow == wiring.In else "o"
        ports[f"{prefix}_{'__'.join(map(str, path))}"] = Value.cast(value)
    ports.update((f"i_{port}", Value.cast(value)) for port, value in bound.items())
    m.submodules[name] = Instance(shared.name, **ports)
    return interface
