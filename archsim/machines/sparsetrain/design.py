"""The record of a sparse training machine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from archsim.arithmetic.dot_product import DotProduct
from archsim.arithmetic.float_datapath import FloatRules
from archsim.arithmetic.formats import BF16, FP32
from archsim.errors import (
    InputError,
    require,
    require_clock,
    require_flag,
    require_positive,
    require_whole,
    require_within,
)
from archsim.machine.design import Design
from archsim.machines.sparsetrain.window import MOST_AHEAD, MOST_ASIDE, Place, places
from archsim.memory import Bank, OffChip, PlainBank, Use
from archsim.ports import CommandField, Port

if TYPE_CHECKING:
    from archsim.layer.intake import Intake
    from archsim.machines.sparsetrain.model import SparseTrainModel
    from energy_models.component import Component

MOST_LANES = 64

Operand = Literal["integer", "bf16"]
OPERANDS = ("integer", "bf16")

RULES = FloatRules(accumulator_joins=False)
"""Of sums of floats: those of the tensor core, but that a sum is aligned with the products' sum,
not with each product, so that it is asked for in the last stage alone."""

COUNTED = (
    "step",
    "product",
    "output",
    "fetch",
    "row_load",
    "column_load",
    "row_word",
    "column_word",
    "word",
    "block",
    "tile",
    "needed_word",
)
"""Actions, which the core counts too: steps of PEs, products, outputs, rows that leave windows;
steps that are loaded, words of values, of the ofmap; commands, tiles, words of masks of outputs."""

WINDOW = "the window moves on by what is read of it"
"""Why operands must be read as they were written."""

SUMS = "its words are sums that are added to, and grow where they lie"
"""Why sums must be."""

AGAIN = "what is read of it again is what PEs multiply"
"""Why steps that are kept must be."""

MEMORIES = {"row": WINDOW, "column": WINDOW, "accumulator": SUMS, "scratchpad": AGAIN}
"""What PEs and loaders keep in banks, and why they must give back what was written."""

SIDES = ("row", "column")
"""The operands, as the core sees them."""

COUNTER_BITS = 48
"""Of each of these counters."""


@dataclass(frozen=True, kw_only=True)
class SparseTrain(Design):
    """`pes` PEs, each a dot product of `lanes` products a cycle.

    segments: of the lanes and of their adder tree, each with sums of its own.  A layer whose dot
        products are short may be computed as so many outputs at a time, of a row with neighbouring
        columns of a PE.
    look_ahead, look_aside: of the window through which zeros are passed over
        (`archsim.machines.sparsetrain.window`); look_ahead 0 takes every row in its turn.
    skip_outputs: only outputs that are needed are computed and leave.
    move_work: columns of a tile are dealt to PEs by how many of their outputs are needed
        (`archsim.machines.sparsetrain.dealing`), so that queues are even.
    rows, columns, depth: of a block, which the operand buffers hold twice: row vectors, column
        vectors, and steps of `lanes` values of each.
    operand: "integer", signed, of 2 to 16 `operand_bits`, in sums that wrap around in
        `accumulator_bits`; or "bf16" in FP32, of 16 and 32.
    row_scratchpad, column_scratchpad: steps of rows and of columns that the loaders keep, so that
        they do not cross the ports again (`archsim.machines.sparsetrain.keeping`); 0 for none.
    row_memory, column_memory, accumulator_memory: kinds of the banks of the operand buffers and of
        the sums, in every PE; the fields above say how large they are.
    scratchpad_memory: kind of the bank of each scratchpad.
    pipelined_pes: registers between the steps of a PE, for FPGAs: its window stands in registers,
        its products have theirs; a block ends `pipeline_cycles` − 3 cycles later.
    off_chip: a word crosses each port in every cycle; nothing slower is modelled.
    """

    pes: int = 8
    lanes: int = 16
    segments: int = 1
    look_ahead: int = 2
    look_aside: int = 5
    skip_outputs: bool = True
    move_work: bool = True
    rows: int = 64
    columns: int = 64
    depth: int = 12
    operand: Operand = field(default="integer", repr=False, metadata={"implied": True})
    operand_bits: int = 8
    accumulator_bits: int = 32
    row_scratchpad: int = field(default=0, repr=False, metadata={"implied": True})
    column_scratchpad: int = field(default=0, repr=False, metadata={"implied": True})
    row_memory: Bank = field(default=PlainBank(), repr=False, metadata={"implied": True})
    column_memory: Bank = field(default=PlainBank(), repr=False, metadata={"implied": True})
    accumulator_memory: Bank = field(default=PlainBank(), repr=False, metadata={"implied": True})
    scratchpad_memory: Bank = field(default=PlainBank(), repr=False, metadata={"implied": True})
    pipelined_pes: bool = field(default=False, repr=False, metadata={"implied": True})
    clock_hz: float = 500e6
    off_chip: OffChip = field(default_factory=OffChip)

    kind: ClassVar[str] = "sparsetrain"

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in ("pes", "rows", "columns", "depth")}
        require_positive(lanes=self.lanes, **sizes, operand_bits=self.operand_bits)
        require_within("lanes", lanes=self.pes * self.lanes)
        require_positive(segments=self.segments)
        self._require_power_of_two("pes", "lanes", "segments", "columns")
        require(self.lanes <= MOST_LANES, f"lanes must be at most {MOST_LANES}, not {self.lanes}")
        require(
            self.segments <= self.lanes,
            f"segments must be at most the {self.lanes} lanes, not {self.segments}",
        )
        at_once, of = self.pes * self.segments, "PEs" if self.segments == 1 else "segments of PEs"
        require(
            self.columns % at_once == 0,
            f"columns must be a multiple of the {at_once} {of}, not {self.columns}",
        )
        require_within("rtl_words", **{"outputs of a block": self.rows * self.columns})
        require_within("rtl_words", **{"words of an operand buffer": 2 * self.rows * self.depth})
        kept = {f"{name}_scratchpad": self.kept_steps(name) for name in SIDES}
        require_whole(0, "not be negative", **kept)
        require_within("rtl_words", **kept)
        for name, most in (("look_ahead", MOST_AHEAD), ("look_aside", MOST_ASIDE)):
            value = getattr(self, name)
            good = isinstance(value, int) and 0 <= value <= most
            require(good, f"{name} must be 0 to {most}, not {value!r}")
        require_clock(self.clock_hz)
        require_flag(pipelined_pes=self.pipelined_pes)
        self._check_formats()
        require(
            self.off_chip == OffChip(), "off_chip must be as it is: a word a cycle at each port"
        )
        for name, why in MEMORIES.items():
            self._check_memory(self.bank(name), self.use(name), why)

    def _check_formats(self) -> None:
        """Widths: of integers any, of floats those of their formats."""
        require(
            self.operand in OPERANDS,
            f"operand must be {' or '.join(OPERANDS)}, not {self.operand!r}",
        )
        bits, total = self.operand_bits, self.accumulator_bits
        if self.floating:
            require(bits == BF16.bits, f"operand_bits must be {BF16.bits} for bf16, not {bits!r}")
            require(
                total == FP32.bits, f"accumulator_bits must be {FP32.bits} for bf16, not {total!r}"
            )
            return
        require(2 <= bits <= 16, f"operand_bits must be 2 to 16, not {bits}")
        least = 2 * bits
        require(
            least <= total <= 62,
            f"accumulator_bits must be {least} to 62, not {total}",
        )

    def for_fpga(self) -> SparseTrain:
        """With `pipelined_pes`."""
        return replace(self, pipelined_pes=True)

    @property
    def pipeline_cycles(self) -> int:
        """From a start to the first step of a PE, and from its last one until a block is done."""
        if not self.pipelined_pes:
            return 3
        return 7 if self.floating else 8

    @property
    def floating(self) -> bool:
        """Whether operands are floats."""
        return self.operand == "bf16"

    @cached_property
    def dot(self) -> DotProduct:
        """What a PE adds to a sum in a cycle, of floats.  Raises `InputError` for integers."""
        require(self.floating, "a machine of integers has no dot product of floats")
        return DotProduct(length=self.lanes, operand=BF16, accumulator=FP32, rules=RULES)

    def _check_memory(self, memory: Bank, use: Use, why: str) -> None:
        """Whether a bank of the kind can keep such words, and gives them back."""
        require(memory.exact, f"{use.field} must be exact, not {memory.kind}: {why}")
        try:
            memory.check(use)
        except InputError as error:
            raise InputError(f"{use.field}: {error}") from error

    def _require_power_of_two(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value & (value - 1):
                raise InputError(f"{name} must be a power of two, not {value}")

    def bank(self, name: str) -> Bank:
        """The kind of the memory of "row", "column", "accumulator" or "scratchpad"."""
        return {
            "row": self.row_memory,
            "column": self.column_memory,
            "accumulator": self.accumulator_memory,
            "scratchpad": self.scratchpad_memory,
        }[name]

    def kept_steps(self, name: str) -> int:
        """That the scratchpad of "row" or of "column" holds."""
        return {"row": self.row_scratchpad, "column": self.column_scratchpad}[name]

    def use(self, name: str) -> Use:
        """What its banks keep: a step of a vector; a sum."""
        sums = name == "accumulator"
        lanes, bits = (1, self.accumulator_bits) if sums else (self.lanes, self.operand_bits)
        return Use(
            name=name,
            field=f"{name}_memory",
            lane_bits=(bits,) * lanes,
            lane_signed=(not self.floating,) * lanes,
            as_is=SUMS if sums else "",
            as_banks=sums,
        )

    def machine_model(self) -> SparseTrainModel:
        from archsim.machines.sparsetrain.model import SparseTrainModel

        return SparseTrainModel(self)

    @property
    def intake(self) -> Intake:
        from archsim.layer.intake import IntegerSums
        from archsim.machines.sparsetrain.float_values import UnsignedZeros

        if self.floating:
            return UnsignedZeros(operand=BF16, accumulator=FP32)
        return IntegerSums(
            operand_bits=self.operand_bits,
            accumulator_bits=self.accumulator_bits,
            multiplier_bits=16,
        )

    @property
    def window(self) -> tuple[Place, ...]:
        """What each lane chooses from, in order."""
        return places(self.look_ahead, self.look_aside)

    @property
    def window_rows(self) -> int:
        """Rows in the window, and banks of an operand buffer."""
        return self.look_ahead + 1

    @property
    def bank_rows(self) -> int:
        """Rows of a vector in one bank."""
        return -(-self.depth // self.window_rows)

    @property
    def segment_lanes(self) -> int:
        """Lanes of a segment."""
        return self.lanes // self.segments

    @property
    def own_columns(self) -> int:
        """Column vectors of a block in each PE: column c is in PE c mod pes."""
        return self.columns // self.pes

    @property
    def own_outputs(self) -> int:
        """Outputs of a block that each PE has a place for."""
        return self.rows * self.own_columns

    @property
    def segment_outputs(self) -> int:
        """Of these, those whose sums are in the banks of a segment: of column vectors in turn."""
        return self.own_outputs // self.segments

    @property
    def step_bits(self) -> int:
        """Of the sum of a step's products, if it is not cut to the accumulators' width; of floats
        not normalised, with the exponent of its unit and three flags of NaN, +∞ and −∞."""
        if self.floating:
            path = self.dot.datapath
            return path.partial_bits + path.exponent_bits + 3
        whole = 2 * self.operand_bits + (self.lanes - 1).bit_length()
        return min(whole, self.accumulator_bits)

    @property
    def command_fields(self) -> tuple[CommandField, ...]:
        """Of a block: `block_fields`; with scratchpads, of its rows and columns where their steps
        are kept, and whether they are written there, or read there instead of at the port."""
        found = self.block_fields
        for name in SIDES:
            if steps := self.kept_steps(name):
                found += (
                    CommandField(f"{name}_place", max((steps - 1).bit_length(), 1)),
                    CommandField(f"{name}_keep", 1),
                    CommandField(f"{name}_again", 1),
                )
        return found

    @property
    def block_fields(self) -> tuple[CommandField, ...]:
        """Sizes; whether the block begins a tile, ends one, and has a mask of outputs; whether its
        PEs compute an output in each segment."""
        sizes = ("rows", "columns", "depth")
        masked = ("masked",) if self.skip_outputs else ()
        flags = ("first", "last", *masked, *(("split",) if self.segments > 1 else ()))
        return (
            *(CommandField(name, getattr(self, name).bit_length()) for name in sizes),
            *(CommandField(name, 1) for name in flags),
        )

    @cached_property
    def ports(self) -> tuple[Port, ...]:
        """The streams: of rows and columns masks and values, one mask a step."""
        fields = self.command_fields
        command = Port(
            name="command",
            direction="i",
            lane_bits=tuple(one.bits for one in fields),
            lane_signed=(False,) * len(fields),
            lane_names=tuple(one.name for one in fields),
        )
        lanes, bits, signed = self.lanes, self.operand_bits, not self.floating
        needed = Port.uniform("needed", "i", self.columns, 1, signed=False)
        return (
            command,
            Port.uniform("row_mask", "i", lanes, 1, signed=False),
            Port.uniform("row", "i", lanes, bits, signed),
            Port.uniform("column_mask", "i", lanes, 1, signed=False),
            Port.uniform("column", "i", lanes, bits, signed),
            *((needed,) if self.skip_outputs else ()),
            Port.uniform("ofmap", "o", self.pes, self.accumulator_bits, signed),
        )

    def word_bits(self, name: str) -> int:
        """Rows and columns take either operand: their words are alike."""
        operand = self.lanes * self.operand_bits
        whole = {"ifmap": operand, "weight": operand, "ofmap": self.pes * self.accumulator_bits}
        return whole.get(name, 0)

    @property
    def macs_per_cycle(self) -> int:
        return self.pes * self.lanes

    @property
    def size(self) -> str:
        return f"{self.pes}x{self.lanes}"

    @property
    def summary(self) -> str:
        ahead = f"look-ahead {self.look_ahead}, look-aside {self.look_aside}"
        skips = ahead if self.look_ahead else "every operand"
        outputs = "needed outputs" if self.skip_outputs else "all outputs"
        parts = f" in {self.segments} segments" if self.segments > 1 else ""
        return (
            f"{self.pes} PEs × {self.lanes} lanes{parts}, {skips}, {outputs}, "
            f"{'BF16' if self.floating else f'{self.operand_bits}-bit'} operands"
        )

    @cached_property
    def components(self) -> tuple[Component, ...]:
        from archsim.machines.sparsetrain.components import sparsetrain_components

        return sparsetrain_components(self)


def counted_of(design: SparseTrain) -> tuple[str, ...]:
    """`COUNTED`, and of each scratchpad steps that are written and that are read."""
    kept = (
        f"{name}_{what}" for name in SIDES if design.kept_steps(name) for what in ("keep", "again")
    )
    return (*COUNTED, *kept)


def events_at_once(design: SparseTrain) -> dict[str, int]:
    """Of actions of the PEs, the most in a cycle."""
    pes = design.pes
    return {
        "step": pes,
        "product": pes * design.lanes,
        "output": pes * design.segments,
        "fetch": pes * design.window_rows,
    }


SPARSETRAIN = SparseTrain()
"""128 multipliers with the window of TensorDash: look-ahead 2, look-aside 5."""
