"""How a space is searched: by which method, how far, from which seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from archsim.errors import InputError, nearest, require_positive, require_seed

METHODS = {
    "exhaustive": "every design, in order",
    "random": "designs drawn without repetition",
    "sobol": "designs of a Sobol sequence, scrambled",
    "nsga2": "generations of NSGA-II (pymoo), many designs at once",
    "tpe": "a tree-structured Parzen estimator (Optuna), for points of over 0.1 s",
    "surrogate": "what gradient-boosted trees (scikit-learn) expect on the front, for those too",
}
"""What each does."""

DEFAULT_DESIGNS = 1000
"""Of methods that do not visit all of them."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """method: of `METHODS`.  designs: computed at most, those that are known among them; None: all
    of an exhaustive search, `DEFAULT_DESIGNS` of others.  population: of a generation of NSGA-II,
    or of what TPE and the surrogate ask for at once: a smaller one learns sooner."""

    method: str = "exhaustive"
    designs: int | None = None
    seed: int = 0
    population: int = 100

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"no search {self.method!r}; {nearest(str(self.method), METHODS)}")
        if self.designs is not None:
            require_positive(designs=self.designs)
        require_positive(population=self.population)
        require_seed(self.seed)

    def most(self, all_designs: int) -> int:
        """Designs that it visits at most, of so many."""
        if self.designs is not None:
            return min(self.designs, all_designs)
        return all_designs if self.method == "exhaustive" else min(DEFAULT_DESIGNS, all_designs)

    def record(self) -> dict[str, Any]:
        """Plain data."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


def search_from_record(given: Mapping[str, Any], where: str) -> Search:
    """From a table of a file.  Raises `InputError`."""
    from archsim.records import build, check_keys

    check_keys(where, given, [entry.name for entry in fields(Search)])
    return build(where, Search, dict(given))


__all__ = ["METHODS", "Search", "search_from_record"]
