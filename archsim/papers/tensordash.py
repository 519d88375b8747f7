"""TensorDash's gain beside ours at its window: both operands' zeros, every output computed.

Ours is `sparsetrain` with look-ahead 2 and look-aside 5 over the same core with neither, on masks
drawn from densities measured over whole trainings.
"""

from __future__ import annotations

from archsim.papers.figures import (
    Comparison,
    Progress,
    Row,
    load_figures,
    read_paper,
    silent,
    unpublished,
)
from archsim.papers.sarma_machine import shares
from archsim.papers.sarma_passes import DENSE, MACHINE, Step, sparse_step
from archsim.papers.sarma_steps import MEAN

NAME = "tensordash"

NETWORKS = ("vgg16", "resnet34", "resnet50")

WINDOW = ("look_ahead=2", "look_aside=5", "skip_outputs=false")

PASSES = ("FP", "BP", "WG")

MISSING = (
    "the paper's mean is of other networks, among them pruned ones, whose masks are not published; "
    "ours is of {networks}"
)

NOTES = (
    "Note 1. Ours: the mean of {networks}, one image, densities of the mean of their trainings "
    "(workloads/training/measured.toml). ResNets have no zeros of gradients, as normalisations "
    "make them dense: their BP gains by the padding around planes alone.",
    "Note 2. TensorDash lets lanes choose in groups that cannot collide, ours place by place; its "
    "16 x 16 PEs share schedules along rows, ours are independent. Its operands are bfloat16, ours "
    "have 8 bits; its machine is compared at 65 nm.",
)


def compare(progress: Progress = silent) -> Comparison:
    """The means of the abstract, and ours of each network and pass."""
    pairs: dict[str, tuple[Step, Step]] = {}
    for network in NETWORKS:
        progress(network)
        pairs[network] = (
            sparse_step(network, MEAN, WINDOW),
            sparse_step(network, MEAN, DENSE),
        )
    listed = ", ".join(NETWORKS)
    rows = [*_means(pairs, listed), *_networks(pairs), _area(pairs)]
    return Comparison(
        paper=NAME,
        title=str(read_paper(NAME)["title"]),
        rows=tuple(rows),
        notes=tuple(note.format(networks=listed) for note in NOTES),
    )


def gains(ours: Step, dense: Step, passes: tuple[str, ...] = PASSES) -> dict[str, float]:
    """By key of the figures: what the machine without skipping takes over what ours takes."""
    mine, its = ours.of(passes), dense.of(passes)
    return {
        "speedup": its.cycles / mine.cycles,
        "logic": its.logic_pj / mine.logic_pj,
        "whole": its.energy_pj / mine.energy_pj,
    }


def _means(pairs: dict[str, tuple[Step, Step]], listed: str) -> list[Row]:
    found = [gains(*pair) for pair in pairs.values()]
    return [
        figure.row(
            sum(one[key] for one in found) / len(found), missing=MISSING.format(networks=listed)
        )
        for key, figure in load_figures(NAME).items()
    ]


def _networks(pairs: dict[str, tuple[Step, Step]]) -> list[Row]:
    rows: list[Row] = []
    for network, (ours, dense) in pairs.items():
        for passes in (*((one,) for one in PASSES), PASSES):
            figure = unpublished(
                key=f"{network}.{'_'.join(passes)}",
                group=f"speedup of {MACHINE} at that window: {network}",
                figure=", ".join(passes),
                unit="1",
                source="means alone are published",
            )
            gain = gains(ours, dense, passes)["speedup"]
            rows.append(figure.row(gain, reason=f"cycles: {shares(ours.of(passes))}"))
    return rows


def _area(pairs: dict[str, tuple[Step, Step]]) -> Row:
    ours, dense = next(iter(pairs.values()))
    figure = unpublished(
        key="area",
        group="what the window costs",
        figure="area over the machine without it",
        unit="1",
        source="arXiv:2009.00748, abstract: less than 5 % more",
    )
    return figure.row(
        ours.area_um2 / dense.area_um2,
        reason="the paper: less than 1.05; ours with its memories, in 45 nm, without wires",
    )


__all__ = ["NETWORKS", "WINDOW", "compare", "gains"]
