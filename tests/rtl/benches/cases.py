"""The toys with their oracles, and how benches for them are drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from amaranth.back import verilog
from amaranth.lib import wiring
from hypothesis import strategies as st

from rtl.benches.bench import Bench, Stimulus, StreamPort
from rtl.benches.boundary import ports_of, probes_of
from rtl.benches.verilated import Verilated

from . import oracle, toys


@dataclass(frozen=True)
class Case:
    """A toy: how it is made, its oracle, and how many words make one word of output."""

    make: Callable[[], wiring.Component]
    tell: Callable[[Bench], oracle.Told]
    group: int = 1


CASES = {
    "wire_1": Case(partial(toys.Wire, 1), oracle.wire),
    "wire_64": Case(partial(toys.Wire, 64), oracle.wire),
    "pipe_8": Case(partial(toys.PipeStage, 8), oracle.pipe_stage),
    "pipe_33": Case(partial(toys.PipeStage, 33), oracle.pipe_stage),
    "skid_12": Case(partial(toys.SkidBuffer, 12), oracle.skid_buffer),
    "lanes_5x13": Case(
        partial(toys.LaneSum, 5, 13, 3), partial(oracle.lane_sum, lanes=5, bits=13, group=3), 3
    ),
    "join_100_2048": Case(
        partial(toys.Join, 100, 2048), partial(oracle.join, a_bits=100, b_bits=2048)
    ),
}


@cache
def _emitted(name: str) -> tuple[str, tuple[StreamPort, ...], tuple[tuple[str, int], ...]]:
    component = CASES[name].make()
    return text_of(component), ports_of(component), probes_of(component)


def emitted(name: str) -> str:
    """The toy's Verilog."""
    return _emitted(name)[0]


@cache
def compiled(name: str) -> Verilated:
    """The toy, compiled."""
    return Verilated(emitted(name))


def text_of(component: wiring.Component) -> str:
    """A component's Verilog, without the comments that name the machine's folders."""
    return verilog.convert(component, name="top", emit_src=False)


def random_words(rng: np.random.Generator, n: int, port: StreamPort) -> np.ndarray:
    """`n` random words for `port`, uint8 `[n, word_bytes]`."""
    words = rng.integers(0, 256, (n, port.word_bytes)).astype(np.uint8)
    words[:, -1] &= (1 << ((port.bits - 1) % 8 + 1)) - 1
    return words


def random_bench(name: str, seed: int, n: int, *, slack: int = 3) -> Bench:
    """A bench of `n` groups with random gaps and, for some words, a random earliest cycle."""
    rng = np.random.default_rng(seed)
    case = CASES[name]
    pattern = {}
    for port in _emitted(name)[1]:
        count = n if port.direction == "o" else n * case.group
        gaps = rng.integers(0, slack, count) * rng.integers(0, 2, count)
        earliest = rng.integers(0, 4 * count + 1, count) * (rng.random(count) < 0.1)
        pattern[port.name] = (gaps, earliest)
    return bench_of(name, pattern, rng)


def bench_of(name: str, pattern: dict, rng: np.random.Generator) -> Bench:
    """A bench for the toy with (gaps, earliest) by port, and random words."""
    _, ports, probes = _emitted(name)
    stimuli = {}
    for port in ports:
        gaps, earliest = (np.asarray(cycles, np.int64) for cycles in pattern[port.name])
        words = random_words(rng, len(gaps), port) if port.direction == "i" else None
        stimuli[port.name] = Stimulus(words=words, gaps=gaps, earliest=earliest)
    return Bench(
        ports=ports,
        probes=probes,
        stimuli=stimuli,
        max_cycles=100_000,
        tail_cycles=int(rng.integers(0, 20)),
    )


@st.composite
def benches(draw: st.DrawFn, name: str) -> Bench:
    """Benches for the toy `name`: short, with every gap and earliest cycle drawn."""
    case = CASES[name]
    n = draw(st.integers(0, 6))
    pattern = {}
    for port in _emitted(name)[1]:
        count = n if port.direction == "o" else n * case.group
        lists = [st.lists(st.integers(0, top), min_size=count, max_size=count) for top in (4, 30)]
        pattern[port.name] = tuple(draw(cycles) for cycles in lists)
    return bench_of(name, pattern, np.random.default_rng(draw(st.integers(0, 99))))
