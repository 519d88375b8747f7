"""How far the cases of a plain `archsim verify` reach, of every design that is shipped.

Bins are those that the case and the model's answer decide: what goes on inside the RTL is left to
`archsim verify DESIGN --coverage`, which runs it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from archsim.errors import InputError

CASES = 20
"""Of `archsim verify` by default."""

Reached = dict[str, dict[str, Any]]
"""By design: "bins", "hit", and the names of those "missing"."""


def reached(design: Any, cases: int = CASES) -> dict[str, Any]:
    """Bins that the first cases of seed 0 are in."""
    from rtl.cases import steered_cases
    from rtl.coverage.bins import Coverage, Seen
    from rtl.registry import verification_of

    coverage = Coverage(one for one in verification_of(design).bins(design) if not one.inside)
    for one in steered_cases(0, cases, design):
        coverage.add(Seen(case=one.case, expected=one.expected))
    record = coverage.record()
    return {name: record[name] for name in ("bins", "hit", "missing")}


SMALLER: str = "grid_rows=2 grid_columns=2 weight_lanes=2 ifmap_lanes=2 banks=8"
"""What `archsim verify scnn` asks for: the published cores are too large for any simulator."""


def write(file: Path) -> None:
    """Of all designs by name, as JSON; of kinds that are too large, of a smaller one."""
    from archsim.machine.registry import is_ours, registered, with_settings

    found: Reached = {}
    for name, one in sorted(registered().items()):
        if is_ours(one):
            try:
                found[name] = reached(one)
            except InputError:
                found[f"{name} {SMALLER}"] = reached(with_settings(one, SMALLER.split()))
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def table(file: Path) -> str:
    """The page's part; "" where nothing is known."""
    if not file.exists():
        return ""
    lines = [
        "## How far a plain `verify` reaches\n",
        f"Situations (bins) that the {CASES} cases of `archsim verify DESIGN` are in, of those that"
        " a case and the model's\nanswer decide; what goes on inside the RTL, queues that are full,"
        " say, is counted by a run (`--coverage`).\n",
        "| design | bins | hit | missing |",
        "|---|---|---|---|",
    ]
    for name, one in json.loads(file.read_text(encoding="utf-8")).items():
        lines.append(
            f"| {name} | {one['bins']} | {one['hit']} | {'; '.join(one['missing']) or 'none'} |"
        )
    return "\n".join(lines) + "\n"


__all__ = ["CASES", "Reached", "reached", "table", "write"]
