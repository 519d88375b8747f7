"""What makes results hard to compare, said aloud."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from archsim.comparison.changes import changes_in
from archsim.saved import SavedResult
from workloads.names import printable

_MISSING = re.compile(r"(?P<what>.+?) of .+? \((?P<kind>\w+)\): (?P<why>.*)")

LABELS = string.ascii_uppercase
"""Names of the results in a comparison; the first is the baseline."""


def same_work(results: Sequence[SavedResult]) -> bool:
    """Whether all results are of the same layers, as far as a saved result tells."""
    return len({frozenset(layer.identity for layer in one.layers) for one in results}) == 1


def notes_on(results: Sequence[SavedResult]) -> tuple[str, ...]:
    """One sentence for each way in which the results are of different things."""
    return tuple(_notes(results))


def _notes(results: Sequence[SavedResult]) -> Iterator[str]:
    if not same_work(results):
        yield (
            f"the results are of different layers ({_each(results, lambda one: one.network)}): "
            "ratios of the totals compare different work, and there is no speedup"
        )
    elif _differ(results, lambda one: one.network):
        yield f"networks of the same layers under different names: {_each(results, _network)}"
    changed = _changed_shapes(results)
    if changed:
        yield f"layers of one name but of different shapes: {', '.join(changed)}"
    if _differ(results, lambda one: tuple(sorted(one.skipped))):
        yield f"operators were skipped: {_each(results, _skipped)}"
    if _differ(results, _version):
        yield (
            f"archsim versions differ: {_each(results, _version)}; "
            "a difference may be the simulator's, not the design's"
        )
    if _differ(results, _clock):
        yield f"clocks differ: {_each(results, _clock)}; compare seconds, not cycles"
    yield from _notes_on_options(results)
    yield from _notes_on_operands(results)
    yield from _notes_on_costs(results)


def _changed_shapes(results: Sequence[SavedResult]) -> list[str]:
    """Names of layers that are not alike in all the results that have them."""
    shapes: dict[str, set[object]] = {}
    for layer in chain.from_iterable(one.layers for one in results):
        shapes.setdefault(layer.name, set()).add(layer.identity)
    return [name for name, found in shapes.items() if len(found) > 1]


MOST_KEYS = 5
"""Of options that are named; of more their number is told."""


def _notes_on_options(results: Sequence[SavedResult]) -> Iterator[str]:
    changed = [printable(one.key, 100) for one in changes_in([one.options for one in results])]
    if changed:
        yield f"options differ: {_each(results, _options)}; in {_some(changed)}"


def _options(one: SavedResult) -> str:
    """What was chosen, as words: the names of what is nested, the values of the rest."""
    said = [
        f"{name} of {_some([*cast('Mapping[str, Any]', value)])}"
        if isinstance(value, Mapping)
        else f"{name}={value}"
        for name, value in one.options.items()
    ]
    return printable(f"({'; '.join(said) or 'none'})", 500)


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_KEYS
    return ", ".join(names[:MOST_KEYS]) + (f" and {more} more" if more > 0 else "")


def _notes_on_operands(results: Sequence[SavedResult]) -> Iterator[str]:
    drawn = any(layer.operands != "none" for one in results for layer in one.layers)
    if _differ(results, _seed):
        without = "" if drawn else " (without effect: no operands were drawn)"
        yield f"seeds differ: {_each(results, _seed)}{without}"
    if _differ(results, _schemes):
        yield f"operands differ: {_each(results, _schemes)}"


def _notes_on_costs(results: Sequence[SavedResult]) -> Iterator[str]:
    changes = changes_in([one.technology for one in results if one.technology])
    if changes:
        yield (
            f"technologies differ ({_each(results, _technology)}) in "
            f"{', '.join(change.key for change in changes)}: "
            "a difference in energy or area may be the technology's"
        )
    units = {one.energy.unit for one in results if one.energy}
    if len(units) > 1:
        yield f"energies are in {' and in '.join(sorted(units))}: they have no ratio"
    if len({_kinds_missing(one.energy.missing) for one in results if one.energy}) > 1:
        yield f"the energies and areas leave out different things: {_each(results, _missing)}"
    found = {
        "energies": [one.energy is not None for one in results],
        "areas": [one.area is not None for one in results],
    }
    for what, present in found.items():
        if any(present) and not all(present):
            without = [label for label, has in zip(LABELS, present, strict=False) if not has]
            yield f"no {what} in {', '.join(without)}"


def _differ(results: Sequence[SavedResult], get: Callable[[SavedResult], object]) -> bool:
    return any(get(one) != get(results[0]) for one in results)


def _each(results: Sequence[SavedResult], get: Callable[[SavedResult], str]) -> str:
    """What each result has to say, after its label: "A edge-16, B tpu-v1"."""
    return ", ".join(f"{label} {get(one)}" for label, one in zip(LABELS, results, strict=False))


def _network(one: SavedResult) -> str:
    return one.network


def _version(one: SavedResult) -> str:
    return one.version or "unknown"


def _technology(one: SavedResult) -> str:
    return one.technology_name or "none"


def _missing(one: SavedResult) -> str:
    if one.energy is None:
        return "(none)"
    said = [
        f"{what} of {', '.join(sorted(kinds))}: {why}" if kinds else what
        for (what, why), kinds in sorted(_kinds_missing(one.energy.missing), key=str)
    ]
    return f"({'; '.join(said) or 'nothing'})"


def _kinds_missing(
    missing: Sequence[str],
) -> frozenset[tuple[tuple[str, str], frozenset[str]]]:
    """What is left out, and why, of which kinds of components: designs name theirs differently.

    missing: as `EnergyAccount.missing` says it; what is not said so stands without kinds.
    """
    found: dict[tuple[str, str], set[str]] = {}
    for text in missing:
        parts = _MISSING.fullmatch(text)
        key = (parts["what"], parts["why"]) if parts else (text, "")
        found.setdefault(key, set()).update([parts["kind"]] if parts else [])
    return frozenset((key, frozenset(kinds)) for key, kinds in found.items())


def _seed(one: SavedResult) -> str:
    return "none" if one.seed is None else str(one.seed)


def _skipped(one: SavedResult) -> str:
    return f"({'; '.join(one.skipped) or 'none'})"


def _clock(one: SavedResult) -> str:
    """The design's clock; "unknown" where it says none."""
    clock_hz = one.design.get("clock_hz")
    return f"{clock_hz / 1e6:,.6g} MHz" if isinstance(clock_hz, int | float) else "unknown"


def _schemes(one: SavedResult) -> str:
    """All operand schemes of the layers; "none" is timing only."""
    found = sorted({layer.operands for layer in one.layers if layer.operands != "none"})
    return f"({'; '.join(found)})" if found else "none (timing only)"
