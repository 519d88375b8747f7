"""A piece of hardware as this package sees it: what it is and how often it acts, never a design.

Kinds, their attributes, and their actions (one event each):

mac         operand_bits, accumulator_bits   mac: a product added to a sum; no registers
multiplier  a_bits, b_bits                   multiply
adder       bits                             add
register    bits                             clock: a cycle in which nothing changes
                                             write: a cycle in which new data are stored
mux         bits, ways                       select
one_hot     bits, ways                       choose: a word by strobes of which one is 1
shifter     bits                             shift (a barrel shifter, any distance)
control     state_bits                       clock: a cycle of a state machine of so many flip-flops
sram        word_bits, depth,                read, write: one word
            read_ports, write_ports
dram                                         read, write: one bit
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from energy_models.errors import require, require_known
from energy_models.frozen import FrozenDict

KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mac": (("operand_bits", "accumulator_bits"), ("mac",)),
    "multiplier": (("a_bits", "b_bits"), ("multiply",)),
    "adder": (("bits",), ("add",)),
    "register": (("bits",), ("clock", "write")),
    "mux": (("bits", "ways"), ("select",)),
    "one_hot": (("bits", "ways"), ("choose",)),
    "shifter": (("bits",), ("shift",)),
    "control": (("state_bits",), ("clock",)),
    "sram": (("word_bits", "depth", "read_ports", "write_ports"), ("read", "write")),
    "dram": ((), ("read", "write")),
}
"""Each kind's attributes, all of them required, and its actions."""

_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    kind: frozenset(attributes) for kind, (attributes, _) in KINDS.items()
}

_ACTIONS = {kind: frozenset(actions) for kind, (_, actions) in KINDS.items()}


@dataclass(frozen=True, kw_only=True)
class Component:
    """`count` alike pieces of one kind.

    name: the place in the hierarchy, dots between levels ("array.mac").
    attributes: the sizes of one piece, the names that `KINDS` gives.
    actions: for each action of the kind, how many of its events (over all pieces) one counted
    action of the simulation stands for: {"read": {"ifmap_read": 16}} says that an `ifmap_read`
    reads a word in 16 banks.
    relative_voltage: of an SRAM with a supply of its own, that supply over its lowest one without
    errors (`energy_models.voltage`); None: as the technology says of all SRAMs.
    """

    name: str
    kind: str
    count: int = 1
    attributes: Mapping[str, int] = field(default_factory=dict[str, int])
    actions: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict[str, Mapping[str, float]]
    )
    relative_voltage: float | None = None

    def __post_init__(self) -> None:
        acting = {action: FrozenDict(events) for action, events in self.actions.items()}
        object.__setattr__(self, "attributes", FrozenDict(self.attributes))
        object.__setattr__(self, "actions", FrozenDict(acting))
        if not self._sound():
            self._refuse()

    def _sound(self) -> bool:
        """Whether nothing is wrong with it; what is, `_refuse` says: sweeps make so many of them
        that the texts would be most of the work."""
        wanted, sizes = _ATTRIBUTES.get(self.kind), self.attributes
        if wanted is None or self.count <= 0:
            return False
        if len(sizes) != len(wanted) or not wanted.issuperset(sizes):
            return False
        if not self.actions.keys() <= _ACTIONS[self.kind]:
            return False
        if sizes and min(sizes.values()) < 1:
            for name, size in sizes.items():
                if size < 1 and (size < 0 or not name.endswith("_ports")):
                    return False
        return self.relative_voltage is None or self.kind == "sram"

    def _refuse(self) -> None:
        """Raise `EnergyError` for the first thing that is wrong."""
        require_known(self.kind, KINDS, f"{self.name}: no component kind {self.kind!r}")
        require(self.count > 0, f"{self.name}: count must be positive, not {self.count}")
        wanted, known = KINDS[self.kind]
        require(
            set(self.attributes) == set(wanted),
            f"{self.name}: a {self.kind} has the attributes {', '.join(wanted) or 'none'}, "
            f"not {', '.join(self.attributes) or 'none'}",
        )
        for name, size in self.attributes.items():
            least = 0 if name.endswith("_ports") else 1
            require(size >= least, f"{self.name}: {name} must be at least {least}, not {size}")
        for action in self.actions:
            require_known(action, known, f"{self.name}: a {self.kind} does not {action!r}")
        require(
            self.relative_voltage is None or self.kind == "sram",
            f"{self.name}: relative_voltage is of an sram, not of a {self.kind}",
        )

    @property
    def text(self) -> str:
        """What it is, for messages and provenance: "sram(word_bits=128, depth=1024)"."""
        return f"{self.kind}({', '.join(f'{k}={v}' for k, v in self.attributes.items())})"
