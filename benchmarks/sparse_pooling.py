"""What max pooling in the sparse core costs and saves: layers in front of a pool, cycle by cycle.

    python benchmarks/sparse_pooling.py        a minute; prints the table of sparse_pooling.md

Convolutions of AlexNet (windows of 3 x 3, two apart) and VGG-16 (2 x 2) at the densities of SCNN's
evaluation, zeros drawn evenly, on the published core; each once without its pool and once with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rows import chosen

from archsim.machines.scnn.design import SCNN_ISCA17
from archsim.machines.scnn.layer import layer_timing
from archsim.machines.scnn.timed_layer import ScnnTiming
from archsim.papers.scnn_layers import SEED, sparse_layers
from workloads.pooling import MaxPool
from workloads.sparse import sparse_operands

THREE = MaxPool(window=(3, 3), stride=(2, 2))
TWO = MaxPool(window=(2, 2), stride=(2, 2))
POOLED = (
    *(("AlexNet", name, THREE) for name in ("conv1", "conv2", "conv5")),
    *(("VGG-16", f"conv{name}", TWO) for name in ("1_2", "2_2", "3_3", "4_3", "5_3")),
)
HEADINGS = (
    "layer", "filters at a time", "cycles of a group", "of its drain", "compute cycles", "change",
    "until the ofmap has left", "change", "Mbit of ofmap",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Figures of a layer, once."""

    filters: int
    group: int
    drain: int
    compute: int
    cycles: int
    megabits: float

    @classmethod
    def of(cls, timing: ScnnTiming) -> Cost:
        """Of the first pass: filters, and the mean group with its drain."""
        one = timing.passes[0]
        return cls(
            filters=one.mapping.group_size,
            group=round(float((one.ends - one.starts).mean())),
            drain=round(float((one.drained - one.drain_starts).mean())),
            compute=timing.compute_cycles,
            cycles=timing.cycles,
            megabits=timing.ofmap_bits / 1e6,
        )


def row(network: str, name: str, pool: MaxPool) -> tuple[Any, ...]:
    """Figures without and with the pool."""
    (sparse,) = (one for one in sparse_layers(network) if one.layer.name == name)
    operands = sparse_operands(
        sparse.layer, weight_density=sparse.weight, ifmap_density=sparse.ifmap, bits=8, seed=SEED
    )
    plain, pooled = (
        Cost.of(layer_timing(SCNN_ISCA17, sparse.layer, operands, pool=behind))
        for behind in (None, pool)
    )

    def both(figure: str, form: str = ",") -> str:
        return f"{getattr(plain, figure):{form}} → {getattr(pooled, figure):{form}}"

    return (
        f"{network} {name}", both("filters"), both("group"), both("drain"), both("compute"),
        f"{pooled.compute / plain.compute - 1:+.1%}", both("cycles"),
        f"{pooled.cycles / plain.cycles - 1:+.1%}", both("megabits", ".2f"),
    )  # fmt: skip


def main() -> None:
    print(f"| {' | '.join(HEADINGS)} |")
    print(f"|{'---|' * len(HEADINGS)}")
    for one in POOLED:
        print(f"| {' | '.join(map(str, row(*one)))} |", flush=True)


if __name__ == "__main__":
    chosen(__doc__)
    main()
