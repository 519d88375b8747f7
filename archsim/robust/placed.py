"""A machine whose memories stand in cells at low voltage, each in a form of its own.

A *form* is how a memory's words lie in failing cells: as they are (`plain`), compressed
(`boveda`, in groups as they come, or the largest that the lanes allow), or with check bits
(`secded`, of the widest code words that the lanes allow).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from archsim.errors import InputError, nearest
from archsim.machine.design import Design
from archsim.memory.kinds import access_of, change_kind, memory_from_record, memory_record
from archsim.memory.seam import Access
from energy_models.voltage import SRAM_CURVE

FORMS: Mapping[str, tuple[str, ...]] = {
    "plain": ("faulty",),
    "boveda": ("boveda", "faulty"),
    "secded": ("faulty", "secded"),
}
"""By form, kinds from the cells outwards, as they are set one behind the other."""

CODED_BITS = (64, 32, 16, 8, 4)
"""Of a code word, the widest first."""

GROUPS = (8, 4, 2, 1)
"""Of compressed lanes, where the usual group does not divide a word's."""

NOMINAL = 1.0
"""V_min over itself: no errors."""

VOLTAGES = tuple(voltage for voltage, _, _ in SRAM_CURVE[1:-1])
"""Over V_min: the digitised points between the lowest and the one without errors."""

MEMORY = "_memory"

ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    "sum": ("accumulator",),
    "output": ("accumulator",),
    "input": ("activation", "ifmap", "row"),
    "list": ("activation",),
    "ifmap": ("activation", "row"),
    "activation": ("ifmap", "row"),
    "filter": ("weight", "column"),
    "kernel": ("weight", "column"),
    "fifo": ("weight",),
    "weight": ("column",),
}
"""Parts of other words for memories, and the names that machines have for them."""


@dataclass(frozen=True, order=True)
class At:
    """A memory ("weight") in a form at a voltage over V_min."""

    memory: str
    form: str
    voltage: float

    @property
    def text(self) -> str:
        """As it stands in files: "weight plain 0.891"."""
        return f"{self.memory} {self.form} {self.voltage:g}"


def memories_of(design: Design) -> tuple[str, ...]:
    """The names of a machine's memories, in the order of its fields."""
    return tuple(name.removesuffix(MEMORY) for name in _accesses(design))


def no_memory(design: Design, name: str) -> InputError:
    """For a name that no memory of a machine has: which one is meant, and which there are."""
    known = memories_of(design)
    near = difflib.get_close_matches(name.lower(), known, n=1)
    words = [own for word, own in ALSO_CALLED.items() if word in name.lower()]
    near += [one for own in words for one in own if one in known]
    hint = f"did you mean {near[0]}? " if near else ""
    return InputError(f"no memory {name!r} in {design.kind}; {hint}known: {', '.join(known)}")


def memory_of_part(design: Design) -> dict[str, str]:
    """The memory to which each group of components of memories belongs."""
    return {part: name for name in memories_of(design) for part in design.memory_parts(name)}


def group_of(component: str, parts: Mapping[str, str]) -> str:
    """The memory of a component, or else the first part of its name.

    parts: of `memory_of_part`; that of "output_stage.bias" is not that of "output_stage.queue".
    """
    words = component.split(".")
    for count in range(len(words), 0, -1):
        part = ".".join(words[:count])
        if part in parts:
            return parts[part]
    return words[0]


def of_operands(design: Design) -> tuple[str, ...]:
    """Those of them that are looked at where none is named: banks that may fail, as biases' and
    sums', are left out."""
    accesses = _accesses(design)

    def of_banks(name: str) -> bool:
        access = accesses[f"{name}{MEMORY}"]
        if name == "weight":  # a FIFO's
            return False
        return access == "bank" or (access != "stream" and design.use(name).as_banks)

    return tuple(
        name for name in memories_of(design) if refusal(design, name, "plain") or not of_banks(name)
    )


def _accesses(design: Any) -> dict[str, Access]:
    """The ways of access of the memories, by field."""
    own = (one for one in fields(design) if one.name.endswith(MEMORY))
    found: dict[str, Access | None] = {one.name: access_of(one) for one in own}
    return {name: access for name, access in found.items() if access is not None}


def placed(design: Design, at: Iterable[At], chip: int = 0) -> Design:
    """The design with some of its memories in failing cells.

    Raises InputError for memories and forms that there are none of, and for what the machine
    refuses.
    """
    for one in at:
        if one.memory not in memories_of(design):
            raise no_memory(design, one.memory)
        if one.form not in FORMS:
            raise InputError(f"no form {one.form!r}; {nearest(one.form, list(FORMS))}")
        design = _one_placed(design, one, chip)
    return design


def refusal(design: Design, memory: str, form: str) -> str:
    """Why a memory may not stand so; "" where it may."""
    try:
        placed(design, [At(memory, form, VOLTAGES[0])])
    except InputError as error:
        return str(error)
    return ""


def able(design: Design) -> dict[str, tuple[str, ...]]:
    """The memories whose cells may fail, with the forms that each may have."""
    found = {
        memory: tuple(form for form in FORMS if not refusal(design, memory, form))
        for memory in memories_of(design)
    }
    return {memory: forms for memory, forms in found.items() if forms}


def _one_placed(design: Any, at: At, chip: int) -> Any:
    """With the widest code words or groups that the machine takes; those of one lane are tried
    last, which fit everywhere, so that what is said against these is said of any."""
    field = f"{at.memory}{MEMORY}"
    access = _accesses(design)[field]
    sizes: dict[str, tuple[int | None, ...]] = {
        "boveda": (None, *GROUPS), "secded": (*CODED_BITS, design.lane_bits(at.memory)),
    }  # fmt: skip
    refused: InputError | None = None
    for size in sizes.get(at.form, (None,)):
        record = memory_record(getattr(design, field))
        for kind in FORMS[at.form]:
            change_kind(record, access, kind)
            record["kind"] = kind
            record |= _parameters(kind, at.voltage, chip, size)
        try:
            changed = {field: memory_from_record(design.kind, field, access, record)}
            return replace(design, **changed)
        except InputError as error:
            refused = error
    assert refused is not None
    raise refused


def chips_of(design: Design, chips: int) -> list[Design]:
    """The design on so many chips, from the one that its memories name on; once where none of its
    memories may fail."""
    accesses = _accesses(design)
    if all(getattr(design, name).exact for name in accesses):
        return [design]
    return [_on_chip(design, accesses, number) for number in range(chips)]


def _on_chip(design: Any, accesses: Mapping[str, Access], further: int) -> Design:
    """So many chips further than the memories say."""
    changed: dict[str, Any] = {}
    for field, access in accesses.items():
        record = memory_record(getattr(design, field))
        if _step_chips(record, further):
            changed[field] = memory_from_record(design.kind, field, access, record)
    return replace(design, **changed)


def _step_chips(record: dict[str, Any], further: int) -> bool:
    """Add to every `chip` of a memory's record, in place; whether there is one."""
    parts: list[Any] = [value for value in record.values() if isinstance(value, dict)]
    found = [_step_chips(one, further) for one in parts]
    if "chip" in record:
        record["chip"] += further
    return "chip" in record or any(found)


def _parameters(kind: str, voltage: float, chip: int, size: int | None) -> dict[str, Any]:
    """What a kind of a form is given; size: of a code word, or of a group, None: as it comes."""
    sized = {} if size is None else {"secded": {"data_bits": size}, "boveda": {"group": size}}
    return {"faulty": {"voltage": voltage, "chip": chip}, **sized}.get(kind, {})


__all__ = [
    "FORMS",
    "NOMINAL",
    "VOLTAGES",
    "At",
    "able",
    "chips_of",
    "group_of",
    "memories_of",
    "memory_of_part",
    "no_memory",
    "of_operands",
    "placed",
    "refusal",
]
