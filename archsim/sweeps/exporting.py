"""What a study keeps, in other forms: Parquet and CSV, Optuna's journal, a design as TOML."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from archsim.errors import require
from archsim.files import new_file, new_folder, require_new
from archsim.machine.registry import design_toml
from archsim.sweeps.study import Study


def export_table(study: Study, path: Path) -> None:
    """All points, whatever became of them, as Parquet or CSV, by the path's ending."""
    require_new(path)
    kinds = {".parquet": "FORMAT parquet, COMPRESSION zstd", ".csv": "FORMAT csv, HEADER"}
    with new_folder(path.with_name(f".{path.name}.export")) as folder:
        part = folder / path.name
        text = str(part).replace("'", "''")
        study.store.rows(f"COPY points TO '{text}' ({kinds[path.suffix]})")
        part.replace(path)


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
    with new_folder(path.with_name(f".{path.name}.export")) as folder:
        part = folder / path.name
        storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(part)))
        made = optuna.create_study(
            study_name=study.space.name or study.path.name,
            storage=storage,
            directions=["minimize"] * len(study.objectives),
        )
        made.set_metric_names(list(study.objectives))
        made.add_trials([trial(row) for row in records])
        part.replace(path)


def export_best(study: Study, path: Path, objective: str, network: str | None = None) -> int:
    """The design of the least of an objective that fulfils the requirements, as TOML for
    `archsim run`, `emit`, `synth`; the number of its point."""
    best = study.best(objective, network=network)
    with new_file(path) as file:
        values = ", ".join(f"{name} {best[name]:.6g}" for name in study.objectives)
        file.write(f"# the least {objective} of {study.path}: {values}\n")
        file.write(design_toml(study.design(int(best["number"]))))
    return int(best["number"])


ENDINGS: dict[str, Callable[[Study, Path], object]] = {
    ".parquet": export_table,
    ".csv": export_table,
    ".log": export_optuna,
}
"""What is written to files of these endings."""


__all__ = ["ENDINGS", "export_best", "export_optuna", "export_table"]
