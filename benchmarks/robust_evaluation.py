"""How long networks whose weights bear errors take to be evaluated, over products of that size.

    python benchmarks/robust_evaluation.py     two minutes; prints a line for each width

A chip is: its errors put into the codes, weights made of them, a session of ONNX Runtime, and
10,000 pictures of 28 x 28, of which 320 are computed.  Beside it, in turns, `np.matmul` of float32
matrices with as many MACs; and products of bytes alone.  The same on `edge-16`, whose products are
of whole numbers (`archsim.layer.integer_products`), with sound cells and with cells of weights that
fail; 2,000 pictures are computed.  Processor time of one thread, the best of three; on `edge-16`
also that of all threads together, and what a clock on the wall shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rows import chosen

from archsim.codecs.robust_quantization import rquant
from archsim.layer.integer_products import bound_product, exact_product
from archsim.machine.design import Design
from archsim.machine.registry import load_design, with_settings
from archsim.robust.chips import Chips
from archsim.robust.evaluate import Evaluator
from archsim.robust.model import RobustModel, model_of
from archsim.robust.on_machine import BATCH, MachineEvaluator, calibrated
from workloads.counts import counted
from workloads.labelled import Labelled
from workloads.simplenet import SimpleNet
from workloads.threads import processors, set_threads

PICTURES, COMPUTED, ON_MACHINE, REPEATS = 10_000, 320, 2000, 3
SIDE = 1024

BLOCK_BYTES = 1 << 19
"""Of what windows see, multiplied at once."""


def main() -> None:
    """A line for each width."""
    set_threads(1)
    draws = np.random.default_rng(0)
    shown = draws.integers(0, 256, (COMPUTED, 1, 28, 28)).astype(np.uint8)
    data = Labelled("drawn", shown, np.zeros(COMPUTED, np.uint8))
    square = draws.standard_normal((SIDE, SIDE)).astype(np.float32)
    for channels in (8, 32):
        network = SimpleNet(channels=channels)
        model = model_of(network, rquant(8), network.draw(0), {})
        evaluator = Evaluator(model, at_once=1)
        chip, pictures, product = 9e9, 9e9, 9e9
        for _ in range(REPEATS):
            chip = min(chip, seconds(lambda model=model: begun(model)))
            pictures = min(pictures, seconds(lambda one=evaluator: one.wrong(data)))
            product = min(product, seconds(lambda: square @ square))
        whole = chip + pictures * PICTURES / COMPUTED
        macs = network.macs * PICTURES
        ratio = whole / (product * macs / SIDE**3)
        print(
            f"{network.weights:,} weights: {whole:.1f} s a chip of {PICTURES:,} pictures "
            f"({1000 * chip:.0f} ms of it before the first), {macs / whole / 1e9:.0f} GMAC/s, "
            f"{ratio:.2f} times as long as float32 products"
        )

    products_alone()
    on_machine(square)


def products_alone() -> None:
    """The products of the paper's width, some pictures at once and layer by layer, and nothing
    else: less than this no evaluation on a machine of whole numbers takes."""
    product, draws = exact_product(), np.random.default_rng(0)
    if product is None:
        print("products of bytes alone: none, since ONNX Runtime's are not exact on this processor")
        return
    network, least = SimpleNet(channels=32), 0.0
    for one in network.convolutions:
        depth, wide = one.inputs * one.kernel**2, one.side + one.kernel // 2  # as they are seen
        several = max(BLOCK_BYTES // (depth * one.side * wide), 1)
        left = draws.integers(0, 256, (one.outputs, depth)).astype(np.uint8)
        right = draws.integers(-128, 128, (depth, several * one.side * wide)).astype(np.int8)
        sums = np.empty((one.outputs, right.shape[1]), np.int32)
        multiply = bound_product(product, left, right, sums)
        least += min(seconds(multiply) for _ in range(9 * REPEATS)) / several
    macs = network.macs
    print(
        f"products of bytes alone: {least * PICTURES:.1f} s a chip of {PICTURES:,} pictures, "
        f"{macs / least / 1e9:.0f} GMAC/s"
    )


def on_machine(square: Any) -> None:
    """The paper's width by products of whole numbers, what is done between layers included."""
    draws = np.random.default_rng(0)
    network = SimpleNet(channels=32)
    model = model_of(network, rquant(8), network.draw(0), {})
    shown = draws.integers(0, 256, (ON_MACHINE, 1, 28, 28)).astype(np.uint8)
    data = Labelled("drawn", shown, np.zeros(ON_MACHINE, np.uint8))
    evaluator = MachineEvaluator(model, calibrated(model, shown[:64]))
    faults = ["weight_memory.kind=faulty", "weight_memory.rate=0.01"]
    for name, settings in (("sound cells", []), ("failing cells of weights", faults)):
        design = with_settings(load_design("edge-16"), settings)
        product = min(seconds(lambda: square @ square) for _ in range(3 * REPEATS))
        for count in sorted({1, processors()}):
            set_threads(count)
            own, wall = evaluated(evaluator, design, data)
            macs = network.macs * PICTURES
            print(
                f"edge-16, {name}, {counted(count, 'thread')}: {own:.1f} s of processor time and "
                f"{wall:.1f} s by the clock a chip of {PICTURES:,} pictures, "
                f"{macs / own / 1e9:.0f} GMAC/s, {own / (product * macs / SIDE**3):.2f} times as "
                "long as float32 products"
            )
        set_threads(1)


def evaluated(evaluator: MachineEvaluator, design: Design, data: Labelled) -> tuple[float, float]:
    """Processor time and time by the clock of `PICTURES`, the least of each."""
    evaluator.wrong(design, data.spread(BATCH))
    own, wall = 9e9, 9e9
    for _ in range(REPEATS):
        start = time.perf_counter()
        own = min(own, seconds(lambda: evaluator.wrong(design, data)))
        wall = min(wall, time.perf_counter() - start)
    return own * PICTURES / len(data), wall * PICTURES / len(data)


def begun(model: RobustModel) -> Evaluator:
    """A chip, ready."""
    return Evaluator(model, Chips().read(model.codes, model.scheme.bits, 1, 0.01), at_once=1)


def seconds(work: Callable[[], object]) -> float:
    """Of processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    chosen(__doc__)
    main()
