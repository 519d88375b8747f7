"""Memories as hardware: of any kind, found through the entry-point group `archsim.memory_rtl`.

An entry has the name of its kind's in `archsim.memories`, "scratchpad.plain", and is called with
the memory.  What it answers: `ScratchpadRtl`, `StreamRtl`, `BankRtl`; and of itself, without a
memory, the proofs that it brings, if any (`proofs`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from archsim.errors import InputError, require
from archsim.memory import Memory, PlainBank, Use
from archsim.plugins import lacking, needed, plugins
from rtl.core.sram import Sram
from rtl.hierarchy import place

if TYPE_CHECKING:
    from rtl.formal import Proof

GROUP = "archsim.memory_rtl"

PLAIN_BANK = PlainBank()

ANSWERS = {
    "scratchpad": ("unit", "events"),
    "stream": ("unit", "port", "events"),
    "bank": ("bank",),
}
"""What the hardware of a kind has, by way of access."""

Placed = tuple[type[wiring.Component], dict[str, Any]]
"""A component, and its parameters, which can be compared and hashed."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a scratchpad holds: `lanes` of `bits`, signed or not, `depth` in each half.

    use: of the memory, as the design says it.  Of a memory of some lanes of a word, first_bit: the
    first one of these in the word, and word_bits: of the whole word.  number_bits: of the number of
    a bank among those alike, which stands above its addresses where cells are told apart.
    """

    lanes: int
    bits: int
    signed: bool
    depth: int
    use: Use | None = field(default=None, repr=False)
    first_bit: int = field(default=0, repr=False)
    word_bits: int = field(default=0, repr=False)
    number_bits: int = field(default=0, repr=False)

    def lane(self, number: int) -> Words:
        """Of one lane alone."""
        whole = self.lanes * self.bits
        return replace(self, lanes=1, first_bit=number * self.bits, word_bits=whole)

    @property
    def whole_bits(self) -> int:
        """Of the whole word."""
        return self.word_bits or self.lanes * self.bits


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a memory's hardware takes from registers: so many bits, and what they are at reset."""

    bits: int
    init: int


@dataclass(frozen=True, kw_only=True)
class CellLayer:
    """What an SRAM (`archsim.memory.seam.Cells`) of a memory is seen through.

    unit: a component of these parameters and of bits, address_bits and first_bit of a bank's words
    in the SRAM's rows; with ports half, address, i and o, the latter two a cycle behind, and
    settings, where there are any (`rtl.memories.faulty.fault_layer.FaultLayer`).
    """

    sram: str
    unit: type[wiring.Component]
    parameters: tuple[tuple[str, Any], ...]
    settings: Settings | None = None

    @property
    def settings_bits(self) -> int:
        """Of its registers."""
        return 0 if self.settings is None else self.settings.bits


def layers_bits(layers: tuple[CellLayer, ...]) -> int:
    """Of the registers of all layers."""
    return sum(one.settings_bits for one in layers)


def layers_port(layers: tuple[CellLayer, ...]) -> dict[str, Any]:
    """The port of what places the layers; none where no layer has registers."""
    bits = layers_bits(layers)
    return {"settings": In(bits)} if bits else {}


class Asked(NamedTuple):
    """What a bank of an SRAM is asked for in this cycle, and shows in the next.

    name: of the bank; half: in which the word lies; address: of the SRAM's row, with the number of
    a PE above; first_bit: of the bank's words in that row.
    """

    name: str
    sram: str
    half: Value
    address: Value
    first_bit: int


def seen_through(
    m: Module, layers: tuple[CellLayer, ...], settings: Value | None, shown: Value, asked: Asked
) -> Value:
    """What a bank shows, through those of the layers that are of its SRAM; settings: of all."""
    begin = 0
    for number, one in enumerate(layers):
        own = slice(begin, begin + one.settings_bits)
        begin = own.stop
        if one.sram != asked.sram:
            continue
        layer: Any = place(
            m, f"{asked.name}_seen_{number}", one.unit, **dict(one.parameters),
            bits=len(shown), address_bits=len(asked.address), first_bit=asked.first_bit,
        )  # fmt: skip
        m.d.comb += [
            layer.half.eq(asked.half),
            layer.address.eq(asked.address),
            layer.i.eq(shown),
        ]
        if one.settings is not None:
            assert settings is not None
            m.d.comb += layer.settings.eq(settings[own])
        shown = layer.o
    return shown


class ScratchpadRtl(Protocol):
    """The hardware of a scratchpad.

    settings: may be there, a method of `Words` that answers `Settings`: the component then has a
    port `settings` of so many bits, which registers of the core drive (`rtl.core.settings`).
    whole_words: its words are read whole, and it is told with `read` which lanes, with `write_last`
    where a tile ends, and with `read_next` which lanes take the word behind; else a memory of its
    own is placed for every lane that is read at a row of its own.
    unit_through: may be there, of a kind that stores words in another form: as `unit`, with layers
    (`CellLayer`) in the order of their settings, all of which its component has in one port.
    """

    whole_words: bool

    def unit(self, words: Words, *, by_lane: bool) -> Placed:
        """The component, with the ports of `rtl.memories.plain.PlainScratchpad` at least."""
        ...

    def events(self, words: Words, *, by_lane: bool) -> dict[str, Any]:
        """Its ports that count, by name, as members: `TileStore.counted` with an "s" behind."""
        ...


class BankRtl(Protocol):
    """The hardware of a bank, and of what a scratchpad of the kind is made of."""

    def bank(self, *, bits: int, depth: int, transparent: bool) -> Placed:
        """The component, with the ports of `rtl.core.sram.Sram`.

        Where the kind has a method `bank_for`, that is asked in its place, with `Words` for the
        bits; its component has a port `settings` where the kind answers some for these words, and
        then a port `number` of their number_bits.
        """
        ...


class StreamRtl(Protocol):
    """The hardware of the two memories of a PE's activations, which change places.

    outside: may be there, a method of the design that answers inputs of the unit beside its ports,
    by name so many bits: `number`, of the PE, and `settings`, registers of the core, which a method
    `settings` of the design then answers (`Settings`).  overflows: may be there and true, where
    lists may be written that are longer than the memory, and are read to its end.
    A kind that keeps words (`archsim.memory.seam.KeepsWords`) takes, in `unit`, `outside` and
    `settings`, what it keeps in place of vectors as they are (`StreamUse.kept`): its unit's ports
    are then of so many bits.  One that compresses values (`archsim.memory.seam.KeepsLists`) has
    `unit_through`: as `unit`, with layers (`CellLayer`) in the order of their settings.
    """

    def unit(self, design: Any) -> Placed:
        """Both, with `ifmap` and `ofmap`, ports as `port` has them."""
        ...

    def port(self, design: Any) -> wiring.Signature:
        """Of either memory: with addresses, or stepped (`StreamMemory.stepped`)."""
        ...

    def events(self, design: Any) -> dict[str, int]:
        """What it counts in a cycle: bits of each."""
        ...


class Proved(Protocol):
    """Hardware that brings proofs: its class, which the entry names, has the method itself."""

    @staticmethod
    def proofs() -> Iterable[Proof]:
        """Of small sizes, each by a name of its own; made quickly, run when asked."""
        ...


def rtl_of(memory: Memory) -> Any:
    """The hardware of a memory's kind; `InputError` where there is none, or a broken one."""
    return _entry(memory.access, memory.kind)(memory)


def proofs_of(access: str, kind: str) -> tuple[Proof, ...]:
    """The proofs that a kind's hardware brings; none where it has no `proofs` of its own.

    Inherited ones are of another's hardware.  Raises `InputError` where there is no such hardware,
    or a broken one, or where two proofs have one name.
    """
    entry = _entry(access, kind)
    own = "proofs" in getattr(entry, "__dict__", ())
    found: tuple[Proof, ...] = tuple(entry.proofs()) if own else ()
    names = [proof.name for proof in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    require(not twice, f"the memory {access}.{kind} has two proofs of one name: {', '.join(twice)}")
    return found


def _entry(access: str, kind: str) -> Any:
    """What makes a kind's hardware of a memory."""
    name = f"{access}.{kind}"
    known = plugins(GROUP)
    if name not in known:
        alike = ", ".join(one for one in known if one.startswith(f"{access}."))
        raise InputError(f"no RTL is known for the memory {name}; known: {alike}")
    return needed(known[name], lambda found: lacking(found, ANSWERS[access]))


def settings_of(memory: Memory, words: Words) -> Settings | None:
    """What the memory's hardware takes from registers; None where nothing."""
    ask = getattr(rtl_of(memory), "settings", None)
    return None if ask is None else ask(words)


def stream_answer(memory: Memory, what: str, *of: Any) -> Any:
    """What a stream's hardware answers to what some kinds alone have ("outside", "settings"), of a
    design and, of words in place of vectors, its `StreamUse`; None of all others."""
    ask = getattr(rtl_of(memory), what, None)
    return None if ask is None else ask(*of)


def stream_inputs(design: Any) -> dict[str, int]:
    """Inputs, by name so many bits, that the memories of activations have from outside of a PE."""
    return stream_answer(design.activation_memory, "outside", design) or {}


def stream_settings(design: Any) -> Settings | None:
    """What they take from registers; None where nothing."""
    return stream_answer(design.activation_memory, "settings", design)


def may_overflow(memory: Memory) -> bool:
    """Whether a stream's kind lets lists be longer than the memory that they are written to."""
    return bool(getattr(rtl_of(memory), "overflows", False))


def built(memory: Memory) -> Memory:
    """The memory without what its registers say: two whose hardware differs in that alone are
    equal so.  Kinds without settings have no `built`."""
    ask = getattr(rtl_of(memory), "built", None)
    return memory if ask is None else ask()


def settings_port(memory: Memory, words: Words) -> dict[str, Any]:
    """The port of what has such a memory in it; none where nothing is set."""
    found = settings_of(memory, words)
    return {} if found is None else {"settings": In(found.bits)}


def scratchpad(m: Module, name: str, memory: Memory, words: Words, *, by_lane: bool = False) -> Any:
    """Add a scratchpad to `m`; returns what has its ports."""
    unit, parameters = rtl_of(memory).unit(words, by_lane=by_lane)
    return place(m, name, unit, **parameters)


def unit_through(
    memory: Memory, words: Words, layers: tuple[CellLayer, ...], *, by_lane: bool
) -> Placed:
    """The component of a scratchpad whose SRAMs are seen through layers.

    Raises `InputError` where the kind's hardware does not know how.
    """
    rtl = rtl_of(memory)
    known = "of memories that keep words as they are, and of those whose RTL has unit_through"
    told = f"no RTL is known for faults in the cells of a {memory.kind} memory: in hardware they"
    require(hasattr(rtl, "unit_through"), f"{told} are {known}")
    return rtl.unit_through(words, layers, by_lane=by_lane)


def bank_for(memory: Memory, words: Words, *, transparent: bool) -> Placed:
    """The component of one read and one write port that holds such words, and its parameters."""
    rtl = rtl_of(memory)
    if hasattr(rtl, "bank_for"):
        return rtl.bank_for(words, transparent=transparent)
    return rtl.bank(bits=words.lanes * words.bits, depth=words.depth, transparent=transparent)


@dataclass(frozen=True, kw_only=True)
class Banks:
    """A memory that a unit makes of banks, and what the unit keeps there; use: None of plain."""

    memory: Memory = PLAIN_BANK
    use: Use | None = None

    def words(self, depth: int) -> Words | None:
        """What they hold."""
        if self.use is None:
            return None
        return Words(lanes=1, bits=self.use.word_bits, signed=False, depth=depth, use=self.use)

    def settings(self, depth: int) -> Settings | None:
        """What they take from registers."""
        words = self.words(depth)
        return None if words is None else settings_of(self.memory, words)

    def port(self, depth: int) -> dict[str, Any]:
        """The port of a unit that places them; none where nothing is set."""
        found = self.settings(depth)
        return {} if found is None else {"settings": In(found.bits)}

    def place(
        self, m: Module, unit: Any, name: str, half: int, *, transparent: bool = False, **sizes: int
    ) -> Any:
        """Add the one of a half to a unit of which `port` is a port; sizes: bits and depth.

        Of one that is not transparent the unit does not mind what is read where it is written.
        """
        words = self.words(sizes["depth"])
        if words is None or words.use is None:
            kind, parameters = rtl_of(self.memory).bank(**sizes, transparent=transparent)
        else:
            of_half = replace(words, use=replace(words.use, half=half))
            kind, parameters = bank_for(self.memory, of_half, transparent=transparent)
        apart = {"apart": True} if kind is Sram and not transparent else {}
        store = place(m, name, kind, **parameters, **apart)
        if words is not None and settings_of(self.memory, words) is not None:
            m.d.comb += store.settings.eq(unit.settings)
        return store


PLAIN_BANKS = Banks()


def made_of(memory: Memory, use: Use) -> dict[str, Banks]:
    """The parameter `banks` of a unit that places some; none where these are SRAMs, as ever."""
    rtl = rtl_of(memory)
    if hasattr(rtl, "bank_for"):
        return {"banks": Banks(memory=memory, use=use)}
    unit, _ = rtl.bank(bits=1, depth=2, transparent=True)
    return {} if unit is Sram else {"banks": Banks(memory=memory, use=use)}


__all__ = [
    "PLAIN_BANKS",
    "Asked",
    "BankRtl",
    "Banks",
    "CellLayer",
    "Placed",
    "Proved",
    "ScratchpadRtl",
    "Settings",
    "StreamRtl",
    "Words",
    "bank_for",
    "built",
    "layers_bits",
    "layers_port",
    "made_of",
    "may_overflow",
    "proofs_of",
    "rtl_of",
    "scratchpad",
    "seen_through",
    "settings_of",
    "settings_port",
    "stream_answer",
    "stream_inputs",
    "stream_settings",
    "unit_through",
]
