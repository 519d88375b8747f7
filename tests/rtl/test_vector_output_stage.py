"""The output stage with per-vector scales: bit for bit the model, cycle for cycle a recurrence."""

import gc
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import vector_output_bench
from amaranth import UnusedElaboratable
from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from faults import Patch, after, drive, placed
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_output_bench import (
    PACK_CYCLES,
    Tile,
    compiled,
    differences,
    ofmap_words,
    random_tiles,
    reference,
)

from archsim.codecs.vector_output import Division, VectorOutput
from archsim.codecs.vsquant import VectorFormat
from archsim.errors import InputError
from rtl.benches.bench import ProtocolError
from rtl.core import output_stage, vector_output_stage, vector_requantize
from rtl.core.vector_output_stage import VectorOutputStage
from rtl.core.vector_requantize import ChannelQuotient, ChannelRescale, Reciprocal, VectorScale


def _output(
    vector: int | None, lanes: int, bits: int = 4, *, signed: bool = True, m: int = 5
) -> VectorOutput:
    form = VectorFormat(bits=bits, signed=signed, vector=vector, scale_bits=m if vector else None)
    return VectorOutput(form=form, lanes=lanes, sum_bits=14, multiplier_bits=6)


GROUPED = _output(6, 2)
OUTPUTS = [
    GROUPED,
    _output(12, 3, signed=False),
    _output(2, 4, 3),
    _output(5, 5, 2, m=1),
    _output(1, 1),
    _output(2, 1, signed=False),
    _output(None, 3),
    _output(None, 1, 8, signed=False),
]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("gaps", [0, 2])
def test_words_and_cycles(output: VectorOutput, gaps: int) -> None:
    assert differences(output, random_tiles(output, 6, gaps), output.queue_words, gaps) == []


@settings(max_examples=25)
@given(
    lanes=st.integers(1, 4),
    rows=st.integers(1, 5) | st.none(),
    bits=st.tuples(st.integers(2, 8), st.booleans(), st.integers(1, 7)),
    more=st.integers(-9, 3),
    seed=st.integers(0, 99),
)
def test_any_output(
    lanes: int, rows: int | None, bits: tuple[int, bool, int], more: int, seed: int
) -> None:
    """Any shape; a queue with fewer places than it takes to move a word a cycle, or more."""
    n, signed, m = bits
    output = _output(rows and rows * lanes, lanes, n, signed=signed, m=m)
    depth = max(output.queue_words + more, output.rows_per_vector)
    assert differences(output, random_tiles(output, 3, seed), depth, seed % 4) == []


def test_the_emitted_stage() -> None:
    """Vectors of 64 in 16 lanes, N = 4, M = 8, in Verilator."""
    form = VectorFormat(bits=4, vector=64, scale_bits=8)
    output = VectorOutput(form=form, lanes=16, sum_bits=24)
    run = compiled(output, output.queue_words)
    tiles = random_tiles(output, 300, seed=2)
    assert differences(output, tiles, output.queue_words, 0, run) == []
    assert differences(output, tiles, output.queue_words, 3, run) == []


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_queue_has_words_enough_to_never_wait(output: VectorOutput) -> None:
    """A long tile with ports that never wait: a row a cycle, and where every row completes a word
    not with a word less."""
    sums = np.zeros((12, output.rows_per_vector * 5 * output.lanes), np.int64)
    tile = Tile(sums=sums, bias=None, shift=0, relu=False, lanes=output.lanes, ends=True)
    rows = sums.size // output.lanes
    words = len(ofmap_words(output, [tile])[0])
    gaps = {"sums": rows, "bias": 0, "command": 1, "ofmap": words}
    none = {name: np.zeros(n, np.int64) for name, n in gaps.items()}
    enough = reference(output, rows, [tile], none)["ofmap"]
    for fewer in (0, 1):
        depth = output.queue_words + PACK_CYCLES - fewer
        slower = reference(output, depth, [tile], none)["ofmap"] > enough
        assert slower == bool(fewer) or (fewer and words < rows)


def test_a_queue_smaller_than_a_vector_is_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        with pytest.raises(InputError, match="at least the 3 rows of a vector, not 2"):
            VectorOutputStage(output=GROUPED, depths=(8, 8), queue_depth=2)
        gc.collect()


_placed = partial(placed, output_stage, vector_output_stage, vector_requantize)


def _input(kind: type, name: str, other: Callable[[Any], Any]) -> Patch:
    """A component that sees another value at one of its inputs."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = kind.elaborate

        def mutated(self: Any, platform: object) -> Module:
            seen = getattr(self, name)
            setattr(self, name, other(self))
            m = plain(self, platform)
            setattr(self, name, seen)
            return m

        monkeypatch.setattr(kind, "elaborate", mutated)

    return patch


def _room(enough: Callable[[Any, Value, Value], Value]) -> Patch:
    """Another test of whether a vector's rows fit into the queue."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = VectorOutputStage._room

        def mutated(self: Any, m: Module, vector_units: Value) -> tuple[Signal, Value]:
            places, _ = plain(self, m, vector_units)
            return places, enough(self, places, self._completed(vector_units))

        monkeypatch.setattr(VectorOutputStage, "_room", mutated)

    return patch


def _bias(change: Callable[[Any, Value], Value]) -> Patch:
    """Another bias word."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain = VectorOutputStage._bias
        monkeypatch.setattr(
            VectorOutputStage, "_bias", lambda self, *others: change(self, plain(self, *others))
        )

    return patch


def _by(name: str, **changes: Callable[[Any], Any]) -> Patch:
    """Other constants of a division."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        plain: Any = getattr(VectorOutput, name)

        def mutated(self: VectorOutput) -> Division:
            by = plain.fget(self)
            return replace(by, **{key: change(getattr(by, key)) for key, change in changes.items()})

        monkeypatch.setattr(VectorOutput, name, property(mutated))

    return patch


def _step_by_step(self: Any, m: Module) -> None:
    with m.If(self.count_read):
        m.d.sync += self.read_address.eq(self.read_address + 1)


def _one_half(self: Any, m: Module) -> None:
    m.d.sync += self.read_half.eq(0)


def _swapped(self: Any, word: Value) -> Value:
    bits = self.output.multiplier_bits
    at = self.output.lanes * self.output.sum_bits
    return Cat(word[:at], word[at + bits : at + 2 * bits], word[at : at + bits])


def _later(cycles: int) -> int:
    return cycles + 1


def _earlier(cycles: int) -> int:
    return cycles - 1


def _less(multipliers: tuple[int, ...]) -> tuple[int, ...]:
    """Reciprocals rounded down."""
    return tuple(max(each - 1, 0) for each in multipliers)


DELAYS = (
    "place_delay",
    "first_row_delay",
    "first_delay",
    "token_delay",
    "magnitude_delay",
    "scale_delay",
)
SIDE_BY_SIDE = OUTPUTS[2]
UNSCALED = OUTPUTS[6]

MUTATIONS: dict[str, tuple[VectorOutput, Patch]] = {
    **{f"{name} one late": (GROUPED, _placed(name=name, cycles=_later)) for name in DELAYS},
    **{f"{name} one early": (GROUPED, _placed(name=name, cycles=_earlier)) for name in DELAYS},
    "the shift one cycle late": (GROUPED, _placed(name="rounding_delay", cycles=_later)),
    # one early is no fault: there is a cycle without a read between two tiles
    "the shift two cycles early": (GROUPED, _placed(name="rounding_delay", cycles=lambda n: n - 2)),
    "magnitudes late, vectors of a row": (
        SIDE_BY_SIDE,
        _placed(name="magnitude_delay", cycles=_later),
    ),
    "words late, no scales": (UNSCALED, _placed(name="place_delay", cycles=_later)),
    "a vector begins where one is under way": (GROUPED, _room(lambda _, places, words: places > 0)),
    "a place too many is asked for": (GROUPED, _room(lambda _, places, words: places > words)),
    "all places are asked for": (
        GROUPED,
        _room(lambda self, places, words: places == self.queue_depth),
    ),
    "back-pressure ignored": (GROUPED, _room(lambda _, places, words: C(1))),
    "the scale with every row": (GROUPED, _placed(name="first_row_delay", cycles=lambda _: 0)),
    "as if the last step were whole": (
        GROUPED,
        after(VectorOutputStage, lambda self, m: drive(m, self.last_step, 0)),
    ),
    "a word never ends a layer": (
        GROUPED,
        after(VectorOutputStage, lambda self, m: drive(m, self.packing.flush, 0)),
    ),
    "a maximum of all vectors": (GROUPED, _input(VectorScale, "first", lambda _: C(0, 1))),
    "a maximum of the last row": (
        GROUPED,
        _input(VectorScale, "first", lambda self: C(1, 1)),
    ),
    "short vectors taken for whole ones": (
        GROUPED,
        _input(VectorScale, "missing", lambda self: C(0, 2)),
    ),
    "a bit of the maximum dropped": (
        GROUPED,
        _input(VectorScale, "top", lambda self: Cat(C(0, 1), self.top[1:])),
    ),
    "scales rounded down": (
        GROUPED,
        _input(VectorScale, "top", lambda self: Mux(self.top > 6, self.top - 6, 0)),
    ),
    "a scale a shift too large": (GROUPED, _by("scale_division", shift=_earlier)),
    "reciprocals rounded down": (GROUPED, _by("value_division", multipliers=_less)),
    "a shift too far": (GROUPED, _by("value_division", shift=_later)),
    "another vector's reciprocal": (
        SIDE_BY_SIDE,
        _input(Reciprocal, "scale", lambda self: self.scale ^ 1),
    ),
    "values rounded down": (GROUPED, _input(ChannelQuotient, "scale", lambda self: C(0, 5))),
    "signs lost": (GROUPED, after(ChannelQuotient, lambda self, m: drive(m, self.o[-1], 0))),
    "no ReLU": (GROUPED, _input(ChannelRescale, "relu", lambda self: C(0, 1))),
    "a bit of z stuck": (GROUPED, after(ChannelRescale, lambda self, m: drive(m, self.z[-2], 1))),
    "a bit of the shift dropped": (
        GROUPED,
        _input(ChannelRescale, "shift", lambda self: Cat(C(0, 1), self.shift[1:])),
    ),
    "multipliers of two lanes swapped": (GROUPED, _bias(_swapped)),
    "biases ignored": (GROUPED, _bias(lambda self, word: word & ~C(-1, 28).as_unsigned())),
    "bias words of one half": (
        GROUPED,
        _input(VectorOutputStage, "bias_write_half", lambda self: C(0, 1)),
    ),
    "a bit of the bias address dropped": (
        GROUPED,
        after(
            VectorOutputStage,
            lambda self, m: drive(m, m.submodules["bias_1"].read_address[0], 0),
        ),
    ),
    "rows step by step": (GROUPED, after(VectorOutputStage, _step_by_step)),
    "sums of one half": (GROUPED, after(VectorOutputStage, _one_half)),
    "halves freed with every read": (
        GROUPED,
        after(VectorOutputStage, lambda self, m: drive(m, self.released, self.count_read)),
    ),
    "biases freed with every tile": (
        GROUPED,
        after(VectorOutputStage, lambda self, m: drive(m, self.bias_released, self.released)),
    ),
    "tiles are always complete": (
        GROUPED,
        _input(VectorOutputStage, "summed", lambda self: C(1, 1)),
    ),
    "biases are always loaded": (
        GROUPED,
        _input(VectorOutputStage, "bias_loaded", lambda self: C(1, 1)),
    ),
}


def _caught(output: VectorOutput) -> bool:
    """Whether there is a difference in any way: a queue that overflows may offer words anew."""
    tiles = random_tiles(output, 12, seed=6)
    try:
        return any(differences(output, tiles, output.queue_words, gaps) for gaps in (0, 3))
    except ProtocolError:
        return True


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_rtl_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    output, patch = MUTATIONS[name]
    patch(monkeypatch)
    assert _caught(output)


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("output", [GROUPED, SIDE_BY_SIDE, UNSCALED])
def test_the_latency_is_tight(
    output: VectorOutput, change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reference that believes one cycle more or less differs from the RTL."""
    plain = vector_output_bench.reference

    def mutated(own: VectorOutput, *others: Any) -> Any:
        latency = own.latency_cycles + change
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(VectorOutput, "latency_cycles", latency)
            return plain(own, *others)

    monkeypatch.setattr(vector_output_bench, "reference", mutated)
    assert _caught(output)


@pytest.mark.parametrize("output", [GROUPED, SIDE_BY_SIDE, UNSCALED])
def test_the_untouched_stage_passes(output: VectorOutput) -> None:
    """The same tiles show no difference without a fault, so the tests above mean something."""
    assert not _caught(output)
