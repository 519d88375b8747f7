"""How the sparse training machine is proved: random layers, zeros, masks of outputs, stalls."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np

from archsim.errors import InputError
from archsim.layer.float_intake import FloatOperands
from archsim.layer.intake import Drawing
from archsim.machine.model import MatrixLayer
from archsim.machines.sparsetrain.design import SIDES, SparseTrain, counted_of
from archsim.numbers import BoolArray
from rtl.coverage.aims import Aim, ResetCase
from rtl.coverage.bins import Bin, Seen
from rtl.coverage.port_bins import LONG_STALL, MANY, STALLS
from rtl.draw import Draw
from rtl.layer_verification import MOST_DRAWS, LayerCase, LayerVerification
from rtl.sparsetrain_bins import (
    BLOCKS,
    HALF_FULL,
    IN_A_MASK,
    KEPT,
    PARTS,
    SHORT,
    go_on_beside,
    mask_bins,
    scratchpad_bins,
    segment_bins,
    sums_bins,
)
from rtl.sparsetrain_floats import (
    CANCELS,
    LONE,
    NEAR,
    RISES,
    SUBNORMAL,
    cancelling_operands,
    lone_operands,
    near_operands,
    rising_operands,
    small_operands,
    special_operands,
)
from rtl.sparsetrain_paths import TrainCase
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, ofmap_shape


def _padded(draw: Draw, layer: Conv2d) -> Conv2d:
    """With zeros on all sides, and a dilated kernel where it fits."""
    apart = [draw.one_of(1, 1, 2) for _ in range(2)]
    sizes = (layer.kernel_height, layer.ifmap_height), (layer.kernel_width, layer.ifmap_width)
    apart = [many if many * (kernel - 1) < size else 1
             for many, (kernel, size) in zip(apart, sizes, strict=True)]  # fmt: skip
    return replace(
        layer, dilation_height=apart[0], dilation_width=apart[1],
        pad_left=draw.whole(0, layer.kernel_width - 1),
        pad_right=draw.whole(0, layer.kernel_width - 1),
        pad_bottom=draw.whole(0, layer.kernel_height - 1),
    )  # fmt: skip


MOST_BLOCKS = 8
"""Products that are drawn for the bin of sums that go on."""

DENSITIES = (0.0, 0.1, 0.3, 0.5, 0.8, 1.0)


class SparseTrainVerification(LayerVerification):
    """Products and convolutions around the sizes of a block."""

    case = TrainCase

    def counters_of(self, design: SparseTrain) -> tuple[str, ...]:
        return counted_of(design)

    def random_layer(self, draw: Draw, design: SparseTrain) -> MatrixLayer:
        if draw.chance(0.6):
            batch = draw.one_of(1, 1, 2)
            return MatMul(
                name="product", m=near(draw, design.rows), n=near(draw, design.columns),
                k=near(draw, draw.one_of(*lengths(design))), batch=batch,
                shared_weight=batch == 1,
            )  # fmt: skip
        layer = super().random_layer(draw, design)
        return _padded(draw, layer) if isinstance(layer, Conv2d) else layer

    def bins(self, design: SparseTrain) -> Iterable[Bin]:
        yield from super().bins(design)
        yield from sums_bins(design)
        yield from mask_bins(design)
        yield from segment_bins(design)
        yield from scratchpad_bins(design)

    def aims(self, design: SparseTrain) -> Mapping[str, Aim]:
        short: dict[str, Aim] = {SHORT: self._short, HALF_FULL: self._half_full}
        short = short if design.segments > 1 else {}
        keeps = any(design.kept_steps(name) for name in SIDES)
        kept: dict[str, Aim] = {KEPT: self._kept} if keeps else {}
        floats: dict[str, Aim] = {
            NEAR: self._near,
            CANCELS: self._cancels,
            LONE: self._lone,
            RISES: self._rises,
            SUBNORMAL: self._small,
        }
        floats = floats if design.floating else {}
        masked: dict[str, Aim] = {IN_A_MASK: self._in_a_mask} if design.skip_outputs else {}
        own = {**short, **kept, **floats, **masked}
        return {**super().aims(design), STALLS: self._stalls, BLOCKS: self._blocks, **own}

    def _stalls(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A layer of which two words or more cross each port, commands apart: one of them waits
        very long, the one before it some cycles."""
        for _ in range(MOST_DRAWS):
            case = self.random_case(draw.whole(0, 1 << 30), 0, design, longest_words // 2)
            counts = case.answer().counts
            if min(count for port, count in counts.items() if port != "command") > 1:
                break
        else:
            raise InputError("no layer was drawn of which two words cross each port")
        gaps = {port: own.copy() for port, own in case.idle.items()}
        for own in gaps.values():
            at = min(draw.whole(1, len(own)), len(own) - 1)
            own[at] += LONG_STALL
            if at:
                own[at - 1] = draw.whole(MANY, 4 * MANY)
        return case.waiting(gaps)

    def _edges(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """Of floats a product of special patterns."""
        if not design.floating:
            return super()._edges(draw, design, longest_words)
        return self._floats(draw, design, longest_words, special_operands)

    def _near(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A product of floats of any signs and fractions."""
        return self._floats(draw, design, longest_words, near_operands)

    def _small(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A product of subnormals with large numbers."""
        return self._floats(draw, design, longest_words, small_operands)

    def _cancels(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A product of floats that cancel in pairs."""
        return self._floats(draw, design, longest_words, cancelling_operands)

    def _lone(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A product in which one operand is infinite, or a NaN: of many steps, or short ones."""
        columns = design.pes * design.segments
        steps = draw.whole(1, 2) if draw.chance(0.4) else draw.whole(5, 3 * design.depth + 5)
        layer = MatMul(
            name="lone", m=draw.whole(1, 3), n=draw.whole(columns, 2 * columns),
            k=steps * design.segment_lanes - draw.whole(0, design.segment_lanes - 1),
        )  # fmt: skip
        case = self.layer_case(design, layer, lone_operands(draw, layer))
        return self._stalled(draw, case, longest_words)

    def _rises(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A product of some steps whose exponents rise."""
        layer = MatMul(
            name="rises", m=draw.whole(1, 4), n=draw.whole(2, design.columns + 1),
            k=draw.whole(2, design.depth + 2) * design.lanes,
        )  # fmt: skip
        given = rising_operands(draw, design, layer)
        return self._stalled(draw, self.layer_case(design, layer, given), longest_words)

    def _floats(
        self,
        draw: Draw,
        design: SparseTrain,
        longest_words: int,
        operands: Callable[[Draw, MatrixLayer], FloatOperands],
    ) -> LayerCase:
        """A product of a block or two, of all its outputs or of some, often of whole steps in which
        segments would gain nothing; the shorter, the less a NaN reaches."""
        n, k = draw.whole(2, design.columns + 1), draw.whole(2, design.lanes * (design.depth + 2))
        if draw.chance(0.4):
            n, k = design.pes, design.lanes * draw.whole(1, 2)
        k = draw.one_of(draw.whole(1, 4), k, k)
        layer = MatMul(name="floats", m=draw.whole(2, design.rows + 1), n=n, k=k)
        given = replace(operands(draw, layer), needed=random_needed(draw, layer))
        if given.needed is not None:
            given.needed.flat[[0, -1]] = True
        return self._stalled(draw, self.layer_case(design, layer, given), longest_words)

    def _blocks(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A product of tiles of two or three blocks, whose ofmap leaves as slowly as some are
        loaded: the first drawn of which a sum goes on meanwhile."""
        for _ in range(MOST_BLOCKS):
            case = self._slow_ofmap(draw, design, longest_words)
            if go_on_beside(Seen(case=case, expected=case.answer())):
                return case
        raise InputError("no product was drawn of which sums go on while others leave")

    def _slow_ofmap(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A product in some blocks, with words of the ofmap that wait about as long as a load."""
        most = max(design.rows, design.columns)  # of a tile, whichever operand is the rows
        layer = MatMul(
            name="blocks", m=most + draw.whole(1, most), n=draw.whole(2, 4),
            k=draw.whole(1, 2) * design.depth * design.lanes + 1,
        )  # fmt: skip
        operands = random_operands(draw, design, layer)
        case = self._stalled(draw, self.layer_case(design, layer, operands), longest_words)
        words = len(case.idle["ofmap"])
        longest = draw.one_of(8, 16) * most * design.depth // words + 8
        ofmap = draw.rng.integers(0, longest + 1, words).astype(np.int64)
        return case.waiting({**case.idle, "ofmap": ofmap})

    def _in_a_mask(self, draw: Draw, design: SparseTrain, longest_words: int) -> ResetCase:
        """A masked product cut short behind the first word of its mask, the next one of which comes
        late; behind the reset another one, whose mask is offered before its command."""
        layer = MatMul(name="masked", m=draw.whole(2, 4), n=draw.whole(2, 4), k=draw.whole(1, 8))
        runs: list[LayerCase] = []
        for _ in range(2):
            operands = random_operands(draw, design, layer, densities=(0.5, 0.8))
            needed = np.ones(ofmap_shape(layer), np.bool_)
            runs.append(self.layer_case(design, layer, replace(operands, needed=needed)))
        interrupted, case = runs
        late = np.full(interrupted.answer().counts["needed"], draw.whole(10, 30), np.int64)
        interrupted = interrupted.waiting({"needed": late})
        first = int(interrupted.answer().crossed["needed"][0])
        cut = first + draw.whole(2, 8)
        counts = case.answer().counts
        gaps = {port: np.zeros(count, np.int64) for port, count in counts.items()}
        gaps["command"] += draw.whole(4, 8)
        return ResetCase(case=case.waiting(gaps), interrupted=interrupted, cycles=cut)

    def _short(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A product in some blocks of which each is short."""
        most = 2 * design.segment_lanes
        layer = MatMul(
            name="short", m=draw.whole(1, 2 * design.rows), n=draw.whole(2, design.columns),
            k=draw.one_of(1, design.segment_lanes, draw.whole(1, most * design.depth)),
        )  # fmt: skip
        operands = random_operands(draw, design, layer)
        return self._stalled(draw, self.layer_case(design, layer, operands), longest_words)

    def _half_full(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A product in some steps that a layer without segments has a step, mostly empty, for."""
        over = draw.whole(1, design.segment_lanes)
        layer = MatMul(
            name="half full", m=draw.whole(2, 2 * design.rows),
            n=design.pes * design.segments * draw.whole(1, 2),
            k=draw.whole(1, 3) * design.lanes + over,
        )  # fmt: skip
        found = random_operands(draw, design, layer, densities=(0.5, 0.8))
        case = self.layer_case(design, layer, replace(found, needed=None))
        return self._stalled(draw, case, longest_words)

    def _kept(self, draw: Draw, design: SparseTrain, longest_words: int) -> LayerCase:
        """A product of which rows or columns are in some tiles, often of all its outputs; long
        ones where words allow."""
        batch = draw.one_of(1, 2)
        down, across = ((1, 2), (2, 1), (2, 2))[draw.whole(0, 2)]
        steps = draw.one_of(draw.whole(1, 2 * design.depth), (PARTS + 1) * design.depth)
        layer = MatMul(
            name="again", m=near(draw, design.rows, down), n=near(draw, design.columns, across),
            k=steps * design.segment_lanes, batch=batch, shared_weight=batch == 1,
        )  # fmt: skip
        for _ in range(MOST_DRAWS):
            operands = random_operands(draw, design, layer)
            if draw.chance(0.8):
                operands = replace(operands, needed=None)
            with suppress(InputError):
                return self._stalled(draw, self.layer_case(design, layer, operands), longest_words)
            layer = replace(layer, k=-(-layer.k * 3 // 4))
        raise InputError(f"no product of at most {longest_words} words was drawn")

    def _stalled(self, draw: Draw, case: LayerCase, longest_words: int) -> LayerCase:
        """With gaps on every port.  Raises `InputError` for one of too many words, or of none."""
        counts = case.answer().counts
        if not counts["ofmap"] or sum(counts.values()) > longest_words:
            raise InputError(f"no product of at most {longest_words} words was drawn")
        return case.waiting({port: draw.gaps(count) for port, count in counts.items()})

    def random_case(
        self, seed: int, number: int, design: SparseTrain, longest_words: int
    ) -> LayerCase:
        draw = Draw(seed, number)
        for _ in range(MOST_DRAWS):
            layer = self.random_layer(draw, design)
            case = self._case(
                design=design,
                layer=layer,
                operands=random_operands(draw, design, layer),
                label=f"seed {seed} case {number}",
            )
            counts = case.answer().counts
            if counts["ofmap"] and sum(counts.values()) <= longest_words:
                break
        else:
            raise InputError(f"no layer of at most {longest_words} words was drawn for the design")
        return case.waiting({port: draw.gaps(count) for port, count in counts.items()})


def lengths(design: SparseTrain) -> tuple[int, ...]:
    """Of dot products, in values: what a block takes; with segments, what one has lanes for."""
    whole = design.depth * design.lanes
    return (whole,) if design.segments == 1 else (whole, design.segment_lanes)


def near(draw: Draw, size: int, tiles: int = 0) -> int:
    """A size in one tile, or in a few of them; or in so many tiles."""
    if tiles:
        return draw.one_of(draw.whole((tiles - 1) * size + 1, tiles * size), tiles * size)
    return draw.one_of(1, 2, size, size + 1, draw.whole(1, 2 * size + 1))


def random_operands(
    draw: Draw,
    design: SparseTrain,
    layer: MatrixLayer,
    densities: tuple[float, ...] = DENSITIES,
) -> Operands | FloatOperands:
    """Values with zeros; a mask of outputs, or none.  Of floats mostly patterns."""
    if design.floating and isinstance(layer, MatMul) and draw.chance(0.4):
        found = rising_operands(draw, design, layer)
    elif design.floating and draw.chance(0.5):
        found = near_operands(draw, layer)
    else:
        found = design.intake.synthetic(layer, Drawing(seed=draw.whole(0, 1 << 30)))
    zeros = {
        name: getattr(found, name) * (draw.rng.random(getattr(found, name).shape) < share)
        for name, share in (
            ("ifmap", float(draw.rng.choice(densities))),
            ("weight", float(draw.rng.choice(densities))),
        )
    }
    return replace(found, **zeros, needed=random_needed(draw, layer))


def random_needed(draw: Draw, layer: MatrixLayer) -> BoolArray | None:
    """A mask of outputs, in which one is needed at least; None for all."""
    if draw.chance(0.3):
        return None
    needed = draw.rng.random(ofmap_shape(layer)) < float(draw.rng.choice((0.05, 0.3, 0.7)))
    needed.flat[draw.whole(0, needed.size - 1)] = True
    return needed


__all__ = ["SparseTrainVerification", "random_needed", "random_operands"]
