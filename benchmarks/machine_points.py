"""The points of machines at low voltage that come with archsim, measured anew.

    python benchmarks/machine_points.py                       lines that have become others
    python benchmarks/machine_points.py --only vsq-16         of lines with this in their key
    python benchmarks/machine_points.py --write               puts what is found into the file

A model, a memory or a mapper that has changed makes points stale (`archsim/robust/models/
machines.jsonl`, one JSON line a point).  The order of the lines stays.  Takes 42 minutes of
processor time.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import Any

from rich.progress import track

from archsim.machine.registry import load_design
from archsim.robust.machine_points import SHIPPED, Key, MachinePoints, ats_of, known_points
from archsim.robust.model import shipped
from workloads.labelled import labelled

MODEL = "mnist-int8-randbet-1"


def _points(images: int) -> MachinePoints:
    """With nothing known and nothing kept."""
    return MachinePoints(
        model=shipped(MODEL), images=images, chips=1,
        pictures=lambda: (labelled("mnist", "test"), labelled("mnist", "train")),
    )  # fmt: skip


def _measured(points: MachinePoints, key: Key) -> Any:
    """What a line should hold."""
    design, at = load_design(key[1]), ats_of(key[2])
    if key[3] == "energy":
        points.technology = key[4]
        return dataclasses.asdict(points.energy(design, at))
    points.chips = int(key[3]) + 1
    kind, _, part = key[5].partition(" ") if len(key) > 5 else ("", "", "")
    if kind == "layer":
        found = points.errors_in_layer(design, at[0], part)
    elif kind == "bit":
        found = points.errors_in_bit(design, at[0], int(part))
    else:
        found = points.errors(design, at)
    return round(found[-1] * points.images / 100)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="lines with this in their key")
    parser.add_argument("--write", action="store_true", help=f"into {SHIPPED.name}")
    args = parser.parse_args()
    known = dict(known_points(SHIPPED))
    counts = {images: _points(images) for images in {int(k[4]) for k in known if k[4].isdigit()}}
    energies = _points(max(counts))
    chosen = [key for key in known if args.only in " ".join(key)]
    if not chosen:
        parser.error(
            f"no line has {args.only!r} in its key; one is {' '.join(next(iter(known)))!r}"
        )
    for key in track(chosen, "measuring"):
        found = _measured(counts[int(key[4])] if key[4].isdigit() else energies, key)
        if found != known[key]:
            print(f"{' '.join(key[1:])}: {known[key]} -> {found}", flush=True)
            known[key] = found
    if args.write:
        lines = [json.dumps([list(key), value]) for key, value in known.items()]
        SHIPPED.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
