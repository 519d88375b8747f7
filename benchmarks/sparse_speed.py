"""How fast the sparse machine is simulated: every product, bank conflict and value.

    python benchmarks/sparse_speed.py                  everything, some two minutes
    python benchmarks/sparse_speed.py products curve   only these
    python benchmarks/sparse_speed.py --json

Rows as those of `speed.py`.  Layers are those of SCNN's evaluation at its densities, zeros drawn
evenly.  Exit code 1 if a target is not met.

products  products a second and core of the timing of five layers, the slowest of them; processor
          time, so that other processes do not count.  Beside it: how many products a second
          memory could feed if both lanes of each (two times three numbers of 32 bits) came from
          it, at the rate at which NumPy copies an array that no cache holds
curve     one layer at six densities: the steepest growth of processor time with products from a
          density to the next, as an exponent; 1 is linear, above it cost would grow faster than
          the work.  Below 1 lie vectors with lanes left over: each pair of vectors costs about as
          much whether it makes one product or sixteen
networks  seconds for all convolutions of AlexNet, VGG-16 and GoogLeNet, all cores: operands
          drawn, cycles, and values of every output
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from rows import measured, parsed, parser_of

LAYERS = (
    ("AlexNet", "conv2"),
    ("AlexNet", "conv4"),
    ("VGG-16", "conv3_1"),
    ("VGG-16", "conv5_2"),
    ("GoogLeNet", "inception_3a/pool_proj"),
)
CURVE = ("VGG-16", "conv4_2")
DENSITIES = (0.1, 0.2, 0.3, 0.5, 0.8, 1.0)
LANE_BYTES = 12
COPIED_BYTES = 1 << 28


def drawn(network: str, name: str, density: float | None = None) -> tuple[Any, Any]:
    """A layer and its operands, at the paper's densities or both at one."""
    from archsim.papers.scnn_layers import SEED, at_density, sparse_layers
    from workloads.sparse import sparse_operands

    (found,) = (one for one in sparse_layers(network) if one.layer.name == name)
    sparse = found if density is None else at_density(found, density)
    operands = sparse_operands(
        sparse.layer, weight_density=sparse.weight, ifmap_density=sparse.ifmap, bits=8, seed=SEED
    )
    return sparse.layer, operands


def timed(repeats: int, layer: Any, operands: Any) -> tuple[int, float]:
    """Products of a layer, and the median of the processor seconds that its timing takes.

    What making the lists and the values takes is not in it: the passes are prepared beforehand.
    """
    from archsim.machines.scnn.design import SCNN_ISCA17
    from archsim.machines.scnn.layer import layer_passes
    from archsim.machines.scnn.timing import pass_timing

    strips = [one for group in layer_passes(SCNN_ISCA17, layer, operands) for one in group]
    spent: list[float] = []
    products = 0
    for _ in range(repeats + 1):
        start = time.process_time()
        passes = [pass_timing(SCNN_ISCA17, one.mapping, one.operands) for one in strips]
        spent.append(time.process_time() - start)
        products = sum(int(one.pes.products.sum()) for one in passes)
    return products, statistics.median(spent[1:])


def copy_rate(repeats: int) -> float:
    """Bytes a second that NumPy reads while it copies an array larger than any cache."""
    import numpy as np

    source, target = np.zeros(COPIED_BYTES, np.uint8), np.ones(COPIED_BYTES, np.uint8)
    times: list[float] = []
    for _ in range(repeats):
        start = time.process_time()
        np.copyto(target, source)
        times.append(time.process_time() - start)
    return COPIED_BYTES / statistics.median(times)


def products(repeats: int) -> Any:
    """The slowest of five layers."""
    from speed_report import Row

    rates: dict[str, float] = {}
    for network, name in LAYERS:
        made, seconds = timed(repeats, *drawn(network, name))
        rates[f"{network} {name}"] = made / seconds / 1e6
    fed = copy_rate(repeats) / (2 * LANE_BYTES) / 1e6
    return Row(
        name="products",
        what="products, with bank conflicts, a second and core; the slowest of five layers",
        measured=min(rates.values()),
        unit="M/s",
        target=300,
        better="higher",
        details={"M_products_per_second": rates, "M_products_fed_by_memory": fed},
        note=f"memory without caches would feed {fed:.0f} M/s",
    )


def curve(repeats: int) -> Any:
    """Time over products that are made."""
    from speed_report import Row

    found: dict[str, dict[str, float]] = {}
    for density in DENSITIES:
        made, seconds = timed(min(repeats, 3), *drawn(*CURVE, density))
        found[f"{density:g}"] = {
            "M_products": made / 1e6, "seconds": seconds, "ns_per_product": 1e9 * seconds / made,
        }  # fmt: skip
    pairs = list(pairwise(found.values()))
    growth = [
        math.log(after["seconds"] / before["seconds"])
        / math.log(after["M_products"] / before["M_products"])
        for before, after in pairs
    ]
    least, most = (one["ns_per_product"] for one in (found["1"], found["0.1"]))
    return Row(
        name="curve",
        what=f"{' '.join(CURVE)}: steepest growth of time with products, densities 0.1 to 1",
        measured=max(growth),
        unit="(exponent)",
        target=1.1,
        better="lower",
        details={"by_density": found, "exponents": growth},
        note=f"{most:.1f} ns a product at 0.1, {least:.1f} at 1",
    )


def networks(repeats: int) -> Any:
    """Whole networks, everything included."""
    from speed_report import Row, seconds_of

    from archsim.machines.scnn.design import SCNN_ISCA17
    from archsim.machines.scnn.layer import layer_timing
    from archsim.papers.scnn_layers import NETWORKS, sparse_layers

    def run() -> dict[str, float]:
        spent: dict[str, float] = {}
        for network in NETWORKS:
            start = time.perf_counter()
            for sparse in sparse_layers(network):
                layer_timing(SCNN_ISCA17, *drawn(network, sparse.layer.name))
            spent[network] = time.perf_counter() - start
        return spent

    layer_timing(SCNN_ISCA17, *drawn("AlexNet", "conv5"))  # compiles
    rounds = [run() for _ in range(min(repeats, 3))]
    times = [sum(one.values()) for one in rounds]
    return Row(
        name="networks",
        what="AlexNet, VGG-16 and GoogLeNet at the paper's densities, cycles and values",
        measured=statistics.median(times),
        unit="s",
        target=60,
        better="lower",
        details={**seconds_of(times), "of_the_last_round": rounds[-1]},
        note="convolutions; drawing included",
    )


MEASUREMENTS: dict[str, Callable[[int], Any]] = {
    "products": products, "curve": curve, "networks": networks,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a target is not met."""
    known = tuple(MEASUREMENTS)
    parser = parser_of("Measure the speed of the sparse machine.", known, repeats=5)
    options = parsed(parser, known, arguments)
    return measured(
        options, {name: partial(call, options.repeats) for name, call in MEASUREMENTS.items()}
    )


if __name__ == "__main__":
    sys.exit(main())
