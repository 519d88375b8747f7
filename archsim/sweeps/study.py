"""A study: a space, and the points of it that were computed, in a folder that keeps them.

>>> from archsim.sweeps import Study                                          # doctest: +SKIP
>>> study = Study.begin("arrays/", space)                                     # doctest: +SKIP
>>> study.run()                                                               # doctest: +SKIP
>>> study.front(["cycles", "area_um2"])                                       # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from archsim.errors import InputError, nearest, require
from archsim.machine.design import Design
from archsim.numbers import IntArray
from archsim.sweeps.evaluation import Evaluator
from archsim.sweeps.expressions import Predicate
from archsim.sweeps.front import FloatArray, Front
from archsim.sweeps.live import NEWS
from archsim.sweeps.objectives import column_of
from archsim.sweeps.packages import require_packages
from archsim.sweeps.points import Grid
from archsim.sweeps.provenance import difference, digest_of, provenance_of
from archsim.sweeps.search import Search
from archsim.sweeps.space import Space
from archsim.sweeps.space_file import space_from_record
from archsim.sweeps.store import FILE, Store, arrow, damage_told, place_of, quoted

if TYPE_CHECKING:
    import pandas as pd

    from archsim.sweeps.plots import StudyPlots
    from archsim.sweeps.running import Progress, Ran
    from archsim.sweeps.workers import Workers

CHUNK_ROWS = 1 << 20
"""Points that are read at once, where all of them are looked at."""


class Study:
    """An open study; close it, or use it in `with`, so that other processes may write it."""

    def __init__(self, path: Path, store: Store, space: Space) -> None:
        self.path, self.store, self.space = path, store, space

    @classmethod
    def begin(cls, path: Path | str, space: Space) -> Self:
        """A study of this space in a folder: a new one, or the one that is there, to continue.

        One that keeps no point makes way for it, whatever its space was.

        Raises `InputError` where the folder keeps a study of another space, where another process
        holds it, and for a space of which something cannot be computed (`Evaluator.check`).
        """
        folder = Path(path)
        evaluator = Evaluator(space)
        evaluator.check()
        digest = digest_of(evaluator.grid)
        store = Store(_made(folder))
        try:
            if store.empty or (store.pointless and store.provenance()["digest"] != digest):
                store.create(space.fields, space.objectives, provenance_of(evaluator.grid, digest))
            known = store.provenance()
            require(
                known["digest"] == digest,
                f"{folder} keeps a study of another space{difference(known, space)}; give another "
                "folder, or the space that it was begun with",
            )
        except BaseException:
            store.close()
            raise
        return cls(folder, store, space)

    @classmethod
    def open(cls, path: Path | str, *, read_only: bool = False) -> Self:
        """The study that a folder, or a file of one, keeps.  Raises `InputError`."""
        folder = Path(path)
        file = folder if folder.is_file() else folder / FILE
        require(file.is_file(), f"{folder} keeps no study: there is no {FILE} in it")
        with damage_told(file):
            store = Store(file, read_only=read_only)
        try:
            with damage_told(file):
                require(not store.empty, f"{folder} keeps no study: its file is empty")
                known = store.provenance()
            require_packages(known.get("packages", {}), f"the study in {folder}")
            space, _ = space_from_record(known["space"], str(folder))
        except BaseException:
            store.close()
            raise
        return cls(file.parent, store, space)

    def run(
        self,
        search: Search | None = None,
        *,
        workers: int | Workers | None = 1,
        progress: Callable[[Progress], None] | None = None,
    ) -> Ran:
        """Compute what is not yet kept.

        workers: processes, 1 of which is this one; None: one for each processor, where the points
        are worth it; or anything that computes batches (`archsim.sweeps.workers.Workers`).
        progress: told after every transaction.
        """
        from archsim.sweeps.running import run

        return run(self, search or Search(), workers=workers, progress=progress)

    @property
    def count(self) -> int:
        """Points that are kept."""
        return int(self.store.rows("SELECT count(*) FROM points")[0][0])

    @property
    def counts(self) -> dict[str, int]:
        """Points by status: "done", "refused", "failed"."""
        query = "SELECT status, count(*) FROM points GROUP BY status ORDER BY status"
        return dict(self.store.rows(query))

    def first_error(self) -> str:
        """Of a point that failed, or if none did, of one that was refused; "" if none was."""
        query = "SELECT error FROM points WHERE status != 'done' ORDER BY status, number LIMIT 1"
        return next((one for (one,) in self.store.rows(query)), "")

    @property
    def fields(self) -> tuple[str, ...]:
        """Columns of what varies."""
        return tuple(self.space.fields)

    @property
    def objectives(self) -> tuple[str, ...]:
        """Columns of what was computed."""
        return self.space.objectives

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the points are from: versions, the space, its networks, its prices."""
        return self.store.provenance()

    def frame(self, where: str = "", *, network: str | None = None) -> pd.DataFrame:
        """Points that were computed, a row each.

        where: a predicate over fields and objectives (`archsim.sweeps.expressions`).
        """
        found = self.store.connection.execute(f"SELECT * FROM points WHERE {self._of(network)}")
        frame = found.df()
        if not where:
            return frame
        predicate = Predicate(where)
        predicate.check_names(self._columns)
        columns = {name: frame[name].to_numpy() for name in predicate.names}
        return frame[predicate.holds(columns, len(frame))].reset_index(drop=True)

    @property
    def _columns(self) -> list[str]:
        return [*self.fields, *self.objectives, "machine", "network"]

    def _of(self, network: str | None) -> str:
        """SQL for points that were computed."""
        if network is None:
            return "status = 'done'"
        names = self.space.network_names
        if network not in names:
            raise InputError(f"the study has no network {network!r}; {nearest(network, names)}")
        text = network.replace("'", "''")
        return f"status = 'done' AND network = '{text}'"

    def chunks(
        self, objectives: Sequence[str], network: str | None = None, *, required: bool = True
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """(numbers of points, objectives [points, objectives]), so many at a time.

        required: only points that fulfil the space's requirements.
        """
        predicates = self.space.required if required else ()
        extra = [name for one in predicates for name in one.names]
        wanted = list(dict.fromkeys(["number", *objectives, *extra]))
        query = f"SELECT {', '.join(map(quoted, wanted))} FROM points WHERE {self._of(network)}"
        batches = self.store.connection.cursor().sql(query).to_arrow_reader(CHUNK_ROWS)
        for batch in batches:
            columns = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in wanted}
            keep = np.ones(len(batch), np.bool_)
            for one in predicates:
                keep &= one.holds(columns, len(batch))
            values = np.stack([columns[name].astype(np.float64) for name in objectives], axis=1)
            yield columns["number"].astype(np.int64)[keep], values[keep]

    def front(
        self,
        objectives: Sequence[str] | None = None,
        *,
        network: str | None = None,
        required: bool = True,
    ) -> pd.DataFrame:
        """The points that no other beats in all objectives ("energy" is `energy_pj`; all of the
        study's if None), the least first; of one network, which may be left out if it is the only.

        required: only points that fulfil the space's requirements.
        """
        chosen = tuple(self.objective(name) for name in objectives or self.objectives)
        found = self.fronts([chosen], network=network, required=required)
        return self.points(found[chosen]).sort_values(list(chosen), ignore_index=True)

    def fronts(
        self,
        wanted: Sequence[tuple[str, ...]],
        *,
        network: str | None = None,
        required: bool = True,
    ) -> dict[tuple[str, ...], IntArray]:
        """Numbers of the points of several fronts, in one pass over the study.

        wanted: columns of objectives (`objective`) of each.
        """
        names = list(dict.fromkeys(name for one in wanted for name in one))
        chunks = self.chunks(names, self.one_network(network), required=required)
        fronts = {one: Front([names.index(name) for name in one]) for one in wanted}
        for numbers, values in chunks:
            for front in fronts.values():
                front.take(numbers, values)
        return {one: front.numbers for one, front in fronts.items()}

    def objective(self, name: str) -> str:
        """The column of an objective as it is typed.  Raises `InputError` if there is none."""
        found = column_of(name)
        if found not in self.objectives:
            hint = nearest(found, self.objectives)
            raise InputError(f"the study has no objective {found!r}; {hint}")
        return found

    def one_network(self, network: str | None) -> str:
        """The one that is meant, or the only one.  Raises `InputError` where several may be."""
        names = self.space.network_names
        require(
            network is not None or len(names) == 1,
            f"of which network? the study has {', '.join(names)}",
        )
        return names[0] if network is None else network

    def points(self, numbers: Sequence[int] | IntArray) -> pd.DataFrame:
        """Rows of points by their numbers."""
        wanted = arrow().table({"number": np.asarray(numbers, np.int64)})
        cursor = self.store.connection.cursor().register("wanted_points", wanted)
        query = "SELECT points.* FROM points SEMI JOIN wanted_points USING (number)"
        return cursor.execute(query).df()

    def best(self, objective: str, *, network: str | None = None) -> pd.Series[Any]:
        """The point of the least of an objective that fulfils the requirements."""
        found = self.front([objective], network=network)
        require(len(found) > 0, f"{self.path}: no point of the study fulfils the requirements")
        return found.iloc[0]

    def design(self, number: int) -> Design:
        """The design of a point, by its number."""
        at = np.array([int(number) // len(self.space.networks)], np.int64)
        design = Grid(self.space).designs(at)[0]
        if isinstance(design, InputError):
            raise design
        return design

    @property
    def plot(self) -> StudyPlots:
        """Matplotlib figures: `study.plot.front()`, `.parallel()`, `.sensitivity()`."""
        from archsim.sweeps.plots import StudyPlots

        return StudyPlots(self)

    def close(self) -> None:
        """Let other processes have it."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        self.close()
        if error is not None:
            with damage_told(self.path / FILE):
                raise error


def _made(folder: Path) -> Path:
    """The file of a study in a folder, which is made.  Raises `InputError`.

    Into a folder that holds other things no study is put.
    """
    place_of(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = not (folder / FILE).exists() and {one.name for one in folder.iterdir()} - {NEWS}
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror}") from error
    if others:
        raise InputError(f"{folder} holds other things and no study; name a new folder")
    return folder / FILE


__all__ = ["Study"]
