"""The score: mutants by unit, and the survivors."""

from __future__ import annotations

from collections import Counter

from tests.mutation.campaign import Found


def table(counted: list[Found], tried: list[Found]) -> str:
    """As text: the score of every unit, then each survivor with its line and change."""
    lines = [_score("all", counted)]
    units = sorted({found.mutant.module for found in counted})
    lines += [_score(unit, [f for f in counted if f.mutant.module == unit]) for unit in units]
    others = Counter(found.outcome for found in tried)
    left_out = others["same"], others["stillborn"]
    lines.append("not counted: {} that change nothing, {} that cannot be made".format(*left_out))
    for found in counted:
        if found.outcome != "caught":
            mutant = found.mutant
            lines.append(
                f"{found.outcome}: {mutant.module}:{mutant.line} {mutant.operator}: {mutant.change}"
            )
    return "\n".join(lines)


def _score(name: str, found: list[Found]) -> str:
    caught = sum(one.outcome == "caught" for one in found)
    share = 100 * caught / len(found) if found else 0
    return f"{name}: {caught} of {len(found)} caught ({share:.0f} %)"
