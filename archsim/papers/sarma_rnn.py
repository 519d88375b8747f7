"""Structured dropout in recurrent networks: a training step with case 3 beside a dense one."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any, cast

from archsim.papers import sarma_rnn_steps as steps
from archsim.papers.evidence import switch
from archsim.papers.figures import (
    Comparison,
    Figure,
    Progress,
    Row,
    load_figures,
    read_paper,
    silent,
    unpublished,
)

NAME = "sarma-rnn"
ROWS = 128
"""Of the reference machine's array."""

BY_SIZE = ("lstm-zaremba-medium", "lstm-tagging")

NOTES = (
    "Note 1. Dense and case 3 go step by step, where no row says another thing. A dense network "
    "may also multiply the inputs of all steps in one product, which case 3 cannot; of which kind "
    "the paper's dense step is, is not published.",
    "Note 2. Vector work is not timed, but in the row that says so. Of every network the layers' "
    "inputs (NR) are dropped, and with RH their own states, at the rate that its source gives.",
    "Note 3. Sizes of the tagging network are of Ma and Hovy, those of translation OpenNMT's "
    "defaults: the paper's are not published.",
)

_PERPLEXITY = Path(__file__).parent / "sarma-rnn-perplexity.json"


def compare(progress: Progress = silent) -> Comparison:
    """The abstract's range, arithmetic, speedups by pass, machine and reason, and perplexity."""
    rows = [*judged_rows(progress), *pass_rows(progress), *size_rows(progress),
            *reason_rows(), *perplexity_rows()]  # fmt: skip
    return Comparison(
        paper=NAME, title=str(read_paper(NAME)["title"]), rows=tuple(rows), notes=NOTES
    )


def judged_rows(progress: Progress = silent) -> list[Row]:
    """Those beside which something is published, or calculated apart."""
    rows: list[Row] = []
    for key, figure in load_figures(NAME).items():
        progress(figure.figure)
        if key in ("lowest", "highest"):
            rows.append(_range_row(figure))
            continue
        _, network, variant = key.split(".")
        rows.append(figure.row(steps.macs_ratio(network, variant, layers="lstm")))
    return rows


def _range_row(figure: Figure) -> Row:
    variant, best = ("NR", min) if figure.key == "lowest" else ("RH", max)
    found = {name: steps.speedup(name, variant, ROWS) for name in steps.NETWORKS}
    network = best(found, key=lambda name: found[name])
    others = {
        f"{steps.NETWORKS[network]}, NR alone": steps.speedup(network, "NR", ROWS),
        "language, medium, in place of large": steps.speedup("lstm-zaremba-medium", variant, ROWS),
        "dense with all steps in one product": steps.speedup_over_batched(network, variant, ROWS),
    }
    measured = [switch(what, value, "archsim.papers.sarma_rnn_steps")
                for what, value in others.items()]  # fmt: skip
    return figure.row(found[network], reason=f"of {steps.NETWORKS[network]}", measured=measured,
                      missing="the paper's networks and machine are not published")  # fmt: skip


def pass_rows(progress: Progress = silent) -> list[Row]:
    """Of each network and variant: FP, BP, WG and all, on the reference machine."""
    rows: list[Row] = []
    for network, shown in steps.NETWORKS.items():
        for variant, said in steps.VARIANTS.items():
            progress(f"{shown}, {said}")
            group = f"{steps.MACHINE}, case 3 over dense: {shown}, {said}"
            ideal = steps.macs_ratio(network, variant)
            for part in (*steps.PASSES, "all"):
                ours = steps.speedup(network, variant, ROWS, part)
                name = "whole step" if part == "all" else part
                reason = f"{100 * ours / ideal:.0f} % of the MACs' {ideal:.2f}"
                rows.append(_row(f"{network}.{variant}.{part}", group, name, ours, reason))
            over = steps.speedup_over_batched(network, variant, ROWS)
            rows.append(_row(f"{network}.{variant}.batched", group,
                             "whole step, dense with all steps in one product", over))  # fmt: skip
            better = steps.speedup_of_the_better(network, variant, ROWS)
            gathered = steps.with_gathering(network, variant, ROWS)
            rows.append(_row(f"{network}.{variant}.gathered", group,
                             "whole step, rows gathered in the core", gathered))  # fmt: skip
            rows.append(_row(f"{network}.{variant}.better", group,
                             "the same, case 3 only where it takes less", better))  # fmt: skip
    return rows


def size_rows(progress: Progress = silent) -> list[Row]:
    """Whole steps on arrays of several sizes."""
    rows: list[Row] = []
    for network in BY_SIZE:
        for variant, said in steps.VARIANTS.items():
            group = f"arrays of several sizes: {steps.NETWORKS[network]}, {said}"
            progress(group)
            for size in steps.SIZES:
                ours = steps.speedup(network, variant, size)
                over = steps.speedup_over_batched(network, variant, size)
                better = steps.speedup_of_the_better(network, variant, size)
                folds = steps.folds_ratio(network, variant, size)
                reason = (
                    f"folds {folds:.2f}; dense with all steps in one product {over:.2f}, "
                    f"case 3 only where it takes less {better:.2f}"
                )
                key = f"{network}.{variant}.{size}"
                rows.append(_row(key, group, f"{size} × {size}", ours, reason))
    return rows


def reason_rows() -> list[Row]:
    """Where the speedup of the medium network goes, from MACs to cycles."""
    rows: list[Row] = []
    network = "lstm-zaremba-medium"
    for variant, said in steps.VARIANTS.items():
        share = steps.gather_share(network, variant, ROWS)
        moved = steps.gathered_bytes(network, variant, ROWS)
        found = {
            "MACs": (steps.macs_ratio(network, variant), ""),
            "folds, rounded up": (steps.folds_ratio(network, variant, ROWS), ""),
            "cycles, memory never waited for": (
                steps.speedup(network, variant, ROWS, far=True), ""),
            "cycles, rows compacted by the host": (
                steps.speedup(network, variant, ROWS), "as in all rows that do not say gathered"),
            "cycles, rows gathered in the core": (
                steps.with_gathering(network, variant, ROWS),
                f"{100 * (share - 1):+.1f} % of the cycles, {100 * (moved - 1):+.0f} % of the "
                "bytes of FP's ifmaps"),
            "cycles, vector work not hidden": (
                steps.with_vector_work(network, variant, ROWS), "128 operations a cycle"),
        }  # fmt: skip
        group = f"where it goes: {steps.NETWORKS[network]}, {said}, {steps.MACHINE}"
        rows += [_row(f"{network}.{variant}.why{at}", group, name, value, reason)
                 for at, (name, (value, reason)) in enumerate(found.items())]  # fmt: skip
    return rows


def perplexity_rows() -> list[Row]:
    """Of a small language model, trained once with what `command` in the file says."""
    record = cast("dict[str, Any]", json.loads(_PERPLEXITY.read_text(encoding="utf-8")))
    trainings = cast("list[dict[str, Any]]", record["trainings"])
    rows: list[Row] = []
    for case in dict.fromkeys(one["case"] for one in trainings):
        best = [min(one["perplexities"]) for one in trainings if one["case"] == case]
        seeds = ", ".join(f"{one:.2f}" for one in best)
        rows.append(_row(f"perplexity.{case}", f"perplexity of a small model: {record['command']}",
                         f"case {case}" if case else "nothing dropped", statistics.mean(best),
                         f"of the seeds {seeds}"))  # fmt: skip
    return rows


def _row(key: str, group: str, figure: str, ours: float, reason: str = "") -> Row:
    source = "its figures by network, phase and machine are not published"
    one = unpublished(key=key, group=group, figure=figure, unit="1", source=source)
    return one.row(ours, reason=reason)


__all__ = ["compare", "judged_rows", "pass_rows", "perplexity_rows", "reason_rows", "size_rows"]
