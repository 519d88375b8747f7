"""What bit errors do to each stored form, and how fast they are injected: the tables of
`docs/low-voltage.md`.

    python benchmarks/faulty_memories.py
    python benchmarks/faulty_memories.py layers sparse_layers   # how long layers take
    python benchmarks/faulty_memories.py hardware               # on an ECP5, some minutes

Values are int8 of a clipped normal distribution (deviation 12), the bell that trained weights
have; a value is wrong if it is read as another one.  Times are of the processor, of all threads,
the best of five.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from rows import chosen

from archsim.codecs.zero_run import decode
from archsim.layer.intake import Drawing
from archsim.machine.registry import with_settings
from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.machines.scnn.layer import layer_passes, layer_timing
from archsim.machines.systolic.design import EDGE_16
from archsim.machines.vsq.design import VSQ_16
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memories.boveda_stream.stream import BovedaStream
from archsim.memories.faulty.fault_map import FaultMap
from archsim.memories.faulty.laws import Columns
from archsim.memories.faulty.scratchpad import Faulty
from archsim.memories.faulty.stream import FaultyStream
from archsim.memories.protected.scratchpad import Parity, Secded
from archsim.memories.protected.stream import ParityStream, SecdedStream
from archsim.memory import Plain, Use
from archsim.simulate import simulate
from fpga.place import place
from rtl.core.memory import Words, rtl_of
from workloads.layers import Conv2d, Network
from workloads.operands import synthetic
from workloads.pooling import MaxPool

RATES = (1e-4, 5e-4, 1e-3, 1e-2)
WORDS, LANES = 1 << 14, 16
USE = Use(name="weight", field="weight", lane_bits=(8,) * LANES, lane_signed=(True,) * LANES)
LARGE = 1 << 24


def forms() -> Iterator[tuple[str, Any]]:
    """Each stored form around or within faulty cells, at a rate that is filled in."""
    plain = Faulty(inner=Plain(capacity_bytes=LARGE), rate=0.0)
    yield "plain", plain
    yield "plain, highest bit protected", replace(plain, protected_bits=(7,))
    yield "Boveda", Faulty(inner=Boveda(capacity_bytes=1 << 20, unit_words=4), rate=0.0)
    yield "Boveda, units of 16 words", Faulty(inner=Boveda(capacity_bytes=1 << 20), rate=0.0)
    yield "parity (9, 8)", Parity(inner=plain, data_bits=8)
    yield "SECDED (22, 16)", Secded(inner=plain, data_bits=16)
    yield "SECDED (39, 32)", Secded(inner=plain, data_bits=32)
    yield "SECDED (72, 64)", Secded(inner=plain, data_bits=64)


def at(memory: Any, rate: float) -> Any:
    """The same form at a rate."""
    if memory.kind == "faulty":
        return memory.at(rate)
    return replace(memory, inner=memory.inner.at(rate))


def suffered(memory: Any, use: Use, words: Any) -> tuple[float, float]:
    """Share of values that are wrong, and root of the mean square of their errors."""
    seen = memory.read_back(use, memory.stored(use, words), len(words))
    wrong = seen != words
    return float(wrong.mean()), float(np.sqrt(((seen - words) ** 2).mean()))


def table() -> None:
    """Rows of forms, columns of rates."""
    drawn = np.random.default_rng(1).normal(0, 12, (WORDS, LANES))
    words = np.clip(np.rint(drawn), -128, 127).astype(np.int64)
    print("| stored form | " + " | ".join(f"{rate:.2%}" for rate in RATES) + " |")
    print("|---|" + "---|" * len(RATES))
    for name, memory in forms():
        pairs = [suffered(at(memory, rate), USE, words) for rate in RATES]
        cells = [f"{wrong:.3%}, {rms:.2f}" for wrong, rms in pairs]
        print(f"| {name} | " + " | ".join(cells) + " |")


def vectors() -> None:
    """VS-Quant words: wrong elements, and wrong scales, which are of a whole vector."""
    use = VSQ_16.use("weight")
    rng = np.random.default_rng(2)
    words = np.stack(
        [
            rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), 4096)
            if signed
            else rng.integers(0, 1 << bits, 4096)
            for bits, signed in zip(use.lane_bits, use.lane_signed, strict=True)
        ],
        axis=1,
    )
    scales = np.array([not signed for signed in use.lane_signed])
    for rate in RATES:
        memory = Faulty(inner=Plain(capacity_bytes=LARGE), rate=rate)
        wrong = memory.read_back(use, memory.stored(use, words), len(words)) != words
        print(
            f"vsq-16 at {rate:.2%}: {wrong[:, ~scales].mean():.3%} of elements, "
            f"{wrong[:, scales].mean():.3%} of scales"
        )


def speed() -> None:
    """Seconds of the processor for 10^8 bits."""
    values = np.random.default_rng(0).integers(0, 256, 10**8 // 8, dtype=np.uint8)
    laws: dict[str, Any] = {
        "flips": {},
        "0 to 1 and 1 to 0": {"zero_to_one": 0.5, "one_to_zero": 0.5},
        "columns": {"law": Columns()},
        "half of the faults sometimes": {"persistent": 0.5},
    }
    for name, more in laws.items():
        faults = FaultMap(words=10**8 // 128, word_bits=128, chip=1, rate=0.01, **more)
        faults.inject(values)
        times: list[float] = []
        for _ in range(5):
            begun = time.process_time()
            faults.inject(values)
            times.append(time.process_time() - begun)
        print(f"10^8 bits, {name}: {min(times):.2f} s of processor time")


def layers() -> None:
    """A layer with faulty memories against the same without, in processor time of the model."""
    layer = Conv2d(
        name="conv", channels=64, ifmap_height=28, ifmap_width=28, filters=64, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, batch=16,
    )  # fmt: skip
    network = Network(name="one", layers=(layer,), source="here")
    operands = {layer.name: EDGE_16.intake.synthetic(layer, Drawing(seed=1))}
    designs: dict[str, Any] = {"plain": EDGE_16}
    for name in ("weight", "ifmap", "accumulator"):
        settings = [f"{name}_memory.kind=faulty", f"{name}_memory.rate=0.001"]
        designs[name] = with_settings(EDGE_16, settings)
    compressed = ["ifmap_memory.kind=boveda", "ifmap_memory.kind=faulty", "ifmap_memory.rate=0.001"]
    designs["ifmap in Boveda's form"] = with_settings(EDGE_16, compressed)
    sound = {"sound, ifmap in Boveda's form": with_settings(EDGE_16, compressed[:1])}
    for own in (designs, sound | {"ifmap in Boveda's form": designs["ifmap in Boveda's form"]}):
        runs = {
            name: partial(simulate, design, network, operands=operands)
            for name, design in own.items()
        }
        _compare(f"{layer.macs:.2g} MACs", runs, rounds=12)


def sparse_layers() -> None:
    """The same of the sparse core, whose layers are timed by their values: the time of both."""
    layer = Conv2d(
        name="conv", channels=64, ifmap_height=28, ifmap_width=28, filters=64, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, batch=4, relu=True,
    )  # fmt: skip
    operands = synthetic(layer, bits=8, density=0.4, seed=1)
    designs: dict[str, Any] = {"sound cells": SCNN_ISCA17}
    rates = [("activation", 1e-3), ("weight", 1e-3), *(("accumulator", rate) for rate in RATES)]
    for name, rate in rates:
        settings = [f"{name}_memory.kind=faulty", f"{name}_memory.rate={rate}"]
        designs[f"{name} at {rate:.2%}"] = with_settings(SCNN_ISCA17, settings)
    runs = {
        name: partial(layer_timing, design, layer, operands) for name, design in designs.items()
    }
    _compare(f"scnn, {layer.macs:.2g} MACs", runs, rounds=16)  # the best of five went up to 10.9
    kinds = ["boveda", "faulty"]
    settings = [f"activation_memory.kind={kind}" for kind in kinds]
    compressed: dict[str, Any] = {
        "sound cells": with_settings(SCNN_ISCA17, settings[:1]),
        f"activation at {RATES[2]:.2%}": with_settings(
            SCNN_ISCA17, [*settings, f"activation_memory.rate={RATES[2]}"]
        ),
    }
    runs = {name: partial(layer_timing, one, layer, operands) for name, one in compressed.items()}
    _compare("scnn in Boveda's form", runs, rounds=12)
    pool = MaxPool(window=(2, 2), stride=(2, 2))
    for what, behind in (("together", None), ("pooled", pool)):
        runs = {
            name: partial(layer_timing, design, layer, operands, pool=behind)
            for name, design in _together().items()
        }
        _compare(f"scnn, {what}, at {RATES[2]:.2%}", runs, rounds=10)


def _together() -> dict[str, Any]:
    """Memories of the sparse core that fail beside others; sums and activations behind check
    bits."""
    every = {
        name: (f"{name}_memory.kind=faulty", f"{name}_memory.rate={RATES[2]}")
        for name in ("accumulator", "activation", "weight")
    }
    found: dict[str, Any] = {"sound cells": SCNN_ISCA17}
    for others in ((), ("activation",), ("weight",), ("activation", "weight")):
        names = ("accumulator", *others)
        own = [each for name in names for each in every[name]]
        found[" and ".join(names)] = with_settings(SCNN_ISCA17, own)
    words = {
        "accumulator": SCNN_ISCA17.accumulator_bits, "activation": SCNN_ISCA17.element_bits,
    }  # fmt: skip
    for name, bits in words.items():
        for kind in ("parity", "secded"):
            coded = (f"{name}_memory.kind={kind}", f"{name}_memory.data_bits={bits}")
            found[f"{name}, {kind}"] = with_settings(SCNN_ISCA17, [*every[name], *coded])
    return found


def _compare(what: str, runs: Mapping[str, Callable[[], object]], *, rounds: int) -> None:
    """The least processor time of each, in turns, and as a multiple of the first one's."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):  # the first one compiles, and finds masks
        for name, run in runs.items():
            begun = time.process_time()
            run()
            times[name].append(time.process_time() - begun)
    least = {name: min(own[1:]) for name, own in times.items()}
    sound = least[next(iter(runs))]
    for name, own in least.items():
        print(f"{what}, {name}: {own:.3f} s, {own / sound:.1f} x")


SPARSE = replace(SCNN_ISCA17, operand_bits=8)
PROTECTED: Mapping[str, tuple[int, ...]] = {
    "all": (),
    "values alone": tuple(range(8, 12)),
    "indices alone": tuple(range(8)),
}
"""Bits of an element that are protected: the value has 8, the index above it 4."""

FORMS: Mapping[str, Any] = {
    "Boveda, groups of 4": lambda inner: replace(inner, inner=BovedaStream()),
    "parity (13, 12)": partial(ParityStream, data_bits=12),
    "SECDED (18, 12)": partial(SecdedStream, data_bits=12),
    "SECDED (55, 48)": partial(SecdedStream, data_bits=48),
}
"""Compressed values with directories of widths and indices; check bits of an element, and of a
vector of four."""


def lists() -> None:
    """Compressed lists of the sparse core: what is read of an ifmap's places, what it does to the
    layer's outputs and cycles; means over 5 chips."""
    layer = Conv2d(
        name="conv", channels=64, ifmap_height=56, ifmap_width=56, filters=16, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True,
    )  # fmt: skip
    drawn = synthetic(layer, bits=8, density=0.4, seed=1)
    bell = np.clip(np.rint(np.random.default_rng(1).normal(0, 12, drawn.ifmap.shape)), -128, 127)
    ifmap = np.where(drawn.ifmap != 0, np.where(bell == 0, 1, bell), 0).astype(np.int8)
    operands = replace(drawn, ifmap=ifmap)
    right = layer_timing(SPARSE, layer, operands)
    kinds: dict[str, Any] = {
        name: partial(FaultyStream, protected_bits=bits) for name, bits in PROTECTED.items()
    }
    for name, around in FORMS.items():
        kinds[name] = lambda around=around, **cells: around(inner=FaultyStream(**cells))
    for name, kind in kinds.items():
        for rate in RATES:
            every = [kind(rate=rate, chip=chip) for chip in range(5)]
            rows = np.mean([_of_lists(layer, operands, right, one) for one in every], axis=0)
            values, rms, outputs, cycles = rows
            print(
                f"| {name} | {rate:.2%} | {values:.3%}, {rms:.2f} | {outputs:.2%} | {cycles:.4f} |"
            )
    held = right.passes[0].mapping
    print(f"{held.used_pes} PEs, tiles of {held.rows.tile} x {held.columns.tile} inputs")


def _of_lists(
    layer: Conv2d, operands: Any, right: Any, memory: Any
) -> tuple[float, float, float, float]:
    """Share of places that are read as another value, root of the mean square of their errors;
    share of outputs that are others; cycles over those with sound cells."""
    design = replace(SPARSE, activation_memory=memory)
    places: list[Any] = []
    for (strip,) in layer_passes(design, layer, operands):
        meant, read = strip.operands.ifmap, strip.operands.computed
        size = strip.mapping.input_places
        of = np.repeat(np.arange(len(meant)), meant.lengths)[:, None] + np.zeros_like(meant.values)
        seen = np.zeros((len(meant), size), np.int64)
        inside = (read.values != 0) & (read.positions < size)
        seen[of[inside], read.positions[inside]] = read.values[inside]
        places.append(seen - decode(meant, size))
    errors = np.concatenate(places)
    number = layer.channels * layer.ifmap_height * layer.ifmap_width
    found = layer_timing(design, layer, operands)
    return (
        float((errors != 0).sum() / number),
        float(np.sqrt((errors**2).sum() / number)),
        float((found.ofmap != right.ofmap).mean()),
        found.cycles / right.cycles,
    )


def hardware() -> None:
    """What the fault layer and coders take of an ECP5, around 2 x 512 words of 8 to 64 bits, and
    the clock between registers."""
    for bits in (8, 16, 64):
        plain = Plain(capacity_bytes=2 * 512 * bits // 8)
        coded = replace(plain, capacity_bytes=plain.capacity_bytes * 2)
        kinds: dict[str, Any] = {
            "sound": plain,
            "faulty": Faulty(inner=plain, rate=0.001),
            "faulty, columns that differ": Faulty(inner=plain, rate=0.001, column_shape=0.15),
            "SECDED": Secded(inner=coded, data_bits=bits),
        }
        for name, memory in kinds.items():
            use = Use(name="ifmap", field="ifmap_memory", lane_bits=(bits,), lane_signed=(True,))
            words = Words(lanes=1, bits=bits, signed=True, depth=512, use=use)
            unit, parameters = rtl_of(memory).unit(words, by_lane=False)
            found = place(unit(**parameters))
            print(
                f"| {bits} bits, {name} | {found.cells.lut4} | {found.cells.flip_flops} | "
                f"{found.fmax_hz / 1e6:.0f} MHz |"
            )


PARTS: Mapping[str, Callable[[], None]] = {
    "hardware": hardware,
    "table": table,
    "vectors": vectors,
    "lists": lists,
    "speed": speed,
    "layers": layers,
    "sparse_layers": sparse_layers,
}

if __name__ == "__main__":
    named = chosen(__doc__, tuple(PARTS))
    if len(named) == len(PARTS):
        named.remove("hardware")  # minutes, and tools: where it is asked for
    for part in named:
        PARTS[part]()
