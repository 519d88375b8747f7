"""What a study keeps, in other forms: Parquet and CSV, Optuna's journal, a design as TOML."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archsim.errors import require
from archsim.files import new_by_name, new_file, require_new
from archsim.machine.registry import design_toml
from archsim.sweeps.space import LARGEST
from archsim.sweeps.store import place_of
from archsim.sweeps.study import Study

if TYPE_CHECKING:
    import pandas as pd


def export_table(study: Study, path: Path) -> None:
    """All points, whatever became of them, as Parquet or CSV, by the path's ending."""
    kinds = {".parquet": "FORMAT parquet, COMPRESSION zstd", ".csv": "FORMAT csv, HEADER"}
    place_of(path.parent)
    with new_by_name(path) as part:
        plain = part.with_name(f"points{path.suffix}")  # DuckDB takes not every name
        study.store.copy_points(plain, kinds[path.suffix])
        plain.rename(part)


def export_optuna(study: Study, path: Path) -> None:
    """All points of one network as a study in Optuna's journal file, which its dashboard opens:
    optuna-dashboard FILE.log.  Raises `InputError` where the study has several networks."""
    require_new(path)
    names = study.space.network_names
    require(len(names) == 1, f"Optuna's study is of one network, and there are {', '.join(names)}")
    optuna: Any = import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    journal: Any = import_module("optuna.storages.journal")
    distributions = {
        name: optuna.distributions.CategoricalDistribution(values)
        for name, values in study.space.fields.items()
    }

    def trial(row: dict[str, Any]) -> Any:
        had = {name: row[name] for name in distributions if row[name] == row[name]}
        params = {name: value for name, value in had.items() if value is not None}
        return optuna.trial.create_trial(
            params=params,
            distributions={name: distributions[name] for name in params},
            values=[float(row[name]) for name in study.objectives],
            user_attrs={"point": str(row["id"]), "machine": row["machine"]},
        )

    records: list[Any] = study.frame().to_dict(orient="records")
    with new_by_name(path) as part:
        storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(part)))
        made = optuna.create_study(
            study_name=study.space.name or study.path.name,
            storage=storage,
            directions=["minimize"] * len(study.objectives),
        )
        made.set_metric_names(list(study.objectives))
        made.add_trials([trial(row) for row in records])


def export_best(study: Study, path: Path, objective: str, network: str | None = None) -> int:
    """The design of the least of an objective that fulfils the requirements, as TOML for
    `archsim run`, `emit`, `synth`; the number of its point."""
    best = study.best(objective, network=network)
    _write_design(study, path, best, f"the least {objective}")
    return int(best["number"])


def export_point(study: Study, path: Path, number: int) -> None:
    """The design of a point as TOML.  Raises `InputError` for a number that no point has."""
    found = study.points([number] if abs(number) < LARGEST else [])
    require(len(found) == 1, f"{study.path} has no point {number}: it is not computed, or no point")
    _write_design(study, path, found.iloc[0], f"point {number}")


def _write_design(study: Study, path: Path, point: pd.Series[Any], what: str) -> None:
    known = [name for name in study.objectives if point[name] is not None]
    with new_file(path) as file:
        values = ", ".join(f"{name} {point[name]:.6g}" for name in known)
        file.write(f"# {what} of {study.path}: {values}\n")
        file.write(design_toml(study.design(int(point["number"]))))


ENDINGS: dict[str, Callable[[Study, Path], object]] = {
    ".parquet": export_table,
    ".csv": export_table,
    ".log": export_optuna,
}
"""What is written to files of these endings."""


__all__ = ["ENDINGS", "export_best", "export_optuna", "export_point", "export_table"]
