"""How fast tensors are stored in Boveda's layout and counted by other codecs.

    python benchmarks/compression.py                  everything, about a minute
    python benchmarks/compression.py rates resnet50   only these
    python benchmarks/compression.py --json

Rows as those of `speed.py`: medians of repeated measurements, things that are compared take turns,
one core but for `resnet50`, which may use all.  Exit code 1 if a target is not met.

rates     values a second of `footprint` (8 bits, groups of 16, units of 1,152 groups), and of
          `encode`, `decode`, and every codec of `CODECS`
packbits  the time of `footprint` over that of `np.packbits` on the same bytes, which reads them
          all and writes an eighth: what one light pass over memory takes
linear    the most over the least processor time a value that `footprint`, `encode` and `decode`
          take for 1, 4, 16 and 64 million values; 1 is linear
resnet50  seconds for `footprint` and `encode` of all weights and activations of ResNet-50, drawn
          beforehand, 8 bits
simulate  the time of `simulate` of ResNet-50 with values and compressed ifmap and weight memories
          over the same with plain ones of the same capacity, on cloud-128 and edge-16: the slower
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rows import measured, parsed, parser_of
from speed import ONE_THREAD

MEASUREMENTS = ("rates", "packbits", "linear", "resnet50", "simulate")

MILLION = 1 << 20
SIZES = (MILLION, 4 * MILLION, 16 * MILLION, 64 * MILLION)
UNIT = 18432
"""Values of a unit: 3 × 3 × 2048."""


def tensor(values: int) -> Any:
    """So many rounded normal values of 8 bits, in units of UNIT where that divides them."""
    import numpy as np

    drawn = np.random.default_rng(0).standard_normal(values, np.float32) * 12
    drawn = np.rint(drawn).clip(-127, 127).astype(np.int8)
    return drawn[: values // UNIT * UNIT].reshape(-1, 9, 2048)


def calls_of(values: Any) -> dict[str, Callable[[], Any]]:
    """Footprint, encode and decode of values."""
    from archsim.codecs.boveda import BovedaFormat, decode, encode, footprint

    form = BovedaFormat()
    encoded = encode(values, form, aligned_axes=1)
    return {
        "footprint": lambda: footprint(values, form, aligned_axes=1),
        "encode": lambda: encode(values, form, aligned_axes=1),
        "decode": lambda: decode(encoded),
    }


def rates(repeats: int) -> Any:
    """Million values a second."""
    from speed_measurements import in_turns
    from speed_report import Row

    from archsim.codecs.reference_codecs import CODECS

    values = tensor(16 * MILLION)
    calls = calls_of(values)
    for name, codec in CODECS.items():
        if name != "boveda":
            calls[name] = lambda codec=codec: codec.bits(values, 8, True, 1, 16)
    times = in_turns(repeats, *calls.values())
    rate = {
        name: values.size / statistics.median(each) / 1e6
        for name, each in zip(calls, times, strict=True)
    }
    return Row(
        name="rates",
        what="Boveda's footprint of 8-bit values, one core",
        measured=rate["footprint"],
        unit="M values/s",
        target=200,
        better="higher",
        details=rate,
        note="M values/s of every call",
    )


def packbits(repeats: int) -> Any:
    """Beside one light pass over the same bytes."""
    import numpy as np
    from speed_measurements import in_turns
    from speed_report import Row, seconds_of

    values = tensor(16 * MILLION)
    data = values.reshape(-1).view(np.uint8)
    calls = calls_of(values)
    names = list(calls)
    *ours, theirs = in_turns(repeats, *calls.values(), lambda: np.packbits(data))
    base = statistics.median(theirs)
    return Row(
        name="packbits",
        what="Boveda's footprint over np.packbits on the same bytes, one core",
        measured=statistics.median(ours[0]) / base,
        unit="× as long",
        target=20,
        better="lower",
        details={
            "packbits": seconds_of(theirs),
            "packbits_million_values_per_second": values.size / base / 1e6,
            **{
                name: statistics.median(each) / base for name, each in zip(names, ours, strict=True)
            },
        },
        note="np.packbits reads all bytes and writes an eighth; × of each call",
    )


def processor_times(repeats: int, call: Callable[[], Any]) -> list[float]:
    """Seconds of this process for each call, without those in which others ran."""
    times: list[float] = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return times


def linear(repeats: int) -> Any:
    """Time a value at four sizes."""
    from speed_report import Row

    spent: dict[str, dict[str, float]] = {}
    for size in SIZES:
        values = tensor(size)
        for name, call in calls_of(values).items():
            each = statistics.median(processor_times(repeats, call))
            spent.setdefault(name, {})[f"{size >> 20} M"] = 1e9 * each / values.size
    spread = {name: max(by.values()) / min(by.values()) for name, by in spent.items()}
    return Row(
        name="linear",
        what="most over least processor time a value, 1 to 64 million values, one core",
        measured=max(spread.values()),
        unit="×",
        target=2,
        better="lower",
        details={f"{name}_ns_per_value": by for name, by in spent.items()},
        note="ns a value by size",
    )


def resnet50(repeats: int) -> Any:
    """A whole network, with all cores."""
    from speed_measurements import in_turns
    from speed_report import Row, seconds_of

    from archsim.codecs.boveda import BovedaFormat, encode, footprint
    from archsim.compression import drawn
    from workloads.builtin import builtin

    tensors = list(drawn(builtin("resnet50"), bits=8))

    def store() -> None:
        for one in tensors:
            form = BovedaFormat(signed=one.signed)
            footprint(one.values, form, aligned_axes=one.aligned_axes)
            encode(one.values, form, aligned_axes=one.aligned_axes)

    asked = os.environ.pop("ARCHSIM_THREADS", None)
    try:
        (times,) = in_turns(repeats, store)
    finally:
        if asked is not None:
            os.environ["ARCHSIM_THREADS"] = asked
    return Row(
        name="resnet50",
        what="footprint and encode of all of ResNet-50's weights and activations, all cores",
        measured=statistics.median(times),
        unit="s",
        target=2,
        better="lower",
        details={**seconds_of(times), "values": sum(one.values.size for one in tensors)},
        note=f"{len(tensors)} tensors, drawn beforehand",
    )


def simulations(repeats: int) -> Any:
    """With values, on two designs, with compressed memories and without."""
    from dataclasses import replace

    from speed_measurements import in_turns, matrix_network
    from speed_report import Row, seconds_of

    from archsim import CLOUD_128, EDGE_16, simulate
    from archsim.layer.intake import Drawing
    from archsim.memories.boveda.scratchpad import Boveda

    network = matrix_network()
    details: dict[str, Any] = {}
    ratios: dict[str, float] = {}
    for plain in (CLOUD_128, EDGE_16):
        compressed = replace(
            plain,
            ifmap_memory=Boveda(capacity_bytes=plain.ifmap_memory.capacity_bytes),
            weight_memory=Boveda(capacity_bytes=plain.weight_memory.capacity_bytes),
        )
        drawing = Drawing(distribution="normal")
        operands = {
            layer.name: plain.numerics.synthetic(layer, drawing) for layer in network.matrix_layers
        }
        without, with_it = in_turns(
            repeats,
            lambda design=plain, given=operands: simulate(design, network, operands=given),
            lambda design=compressed, given=operands: simulate(design, network, operands=given),
        )
        name = f"{plain.kind}_{plain.rows}"
        ratios[name] = statistics.median(with_it) / statistics.median(without)
        details |= {f"{name}_plain": seconds_of(without), f"{name}_boveda": seconds_of(with_it)}
        details[f"{name}_ratio"] = ratios[name]
    return Row(
        name="simulate",
        what="ResNet-50 with values and compressed memories over plain ones, one core",
        measured=max(ratios.values()),
        unit="× as long",
        target=1.2,
        better="lower",
        details=details,
        note="8-bit operands of a normal distribution, drawn beforehand; the slower of two designs",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a target is not met."""
    known = tuple(MEASUREMENTS)
    parser = parser_of("Measure the speed of the codecs.", known, repeats=7)
    options = parsed(parser, known, arguments)
    os.environ.update(ONE_THREAD)
    measure = {
        "rates": rates,
        "packbits": packbits,
        "linear": linear,
        "resnet50": resnet50,
        "simulate": simulations,
    }
    return measured(
        options, {name: partial(call, options.repeats) for name, call in measure.items()}
    )


if __name__ == "__main__":
    sys.exit(main())
