"""A study's file: points, cycles of their layers, and where they are from, in DuckDB.

| table | holds |
|---|---|
| `points` | a row a point: `OWN`, a column a field that varies, a column an objective |
| `layers` | cycles of every layer of a point (`point`, `layer`, `cycles`), where they are kept |
| `provenance` | texts by name: the space, what computed it, and with what |
| `schema` | the version of all this |

One process writes, in one transaction a batch; a point that was written stays.  What a transaction
ended is in the file, whatever happens to the process then.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archsim.errors import InputError, require
from archsim.sweeps.values import Value

if TYPE_CHECKING:
    import duckdb

Table = Any
"""A table of pyarrow's, which has no types."""

VERSION = 2
"""Of the tables: 1 had an index of contents, which took most of the file and half of the time."""

FILE = "study.duckdb"
"""Its name in the folder of a study."""

MEMORY = "128MB"
"""What DuckDB takes of memory at most: a study of any size is written and read with it."""

NO_DOWNLOADS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""DuckDB fetches what it wants for files of other databases; nothing of ours needs it."""

HELD = "Conflicting lock is held in"
"""How DuckDB says that another process has a file."""

LOCK_SECONDS = 1.0

MOST_SAID = 300
"""Characters of what DuckDB says that are passed on."""

OWN = {
    "id": "UUID NOT NULL",
    "number": "BIGINT NOT NULL",
    "batch": "INTEGER NOT NULL",
    "status": "VARCHAR NOT NULL",
    "error": "VARCHAR",
    "machine": "VARCHAR NOT NULL",
    "network": "VARCHAR NOT NULL",
}
"""Columns of points that every study has, and their types.  id: its content's hash."""


@contextmanager
def damage_told(path: Path) -> Generator[None]:
    """What DuckDB says of a file that is damaged becomes an `InputError`."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        said = str(error).splitlines()[0][:MOST_SAID]
        raise InputError(f"{path} is damaged, or not a study: {said}") from error


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def type_of(values: Sequence[Value]) -> str:
    """The type of a column of a field's values."""
    kinds = {type(one) for one in values}
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        return "BIGINT"
    return "DOUBLE" if kinds <= {int, float} else "VARCHAR"


class Store:
    """An open file of a study.  Raises `InputError` for what is none, or that another holds."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self.connection: duckdb.DuckDBPyConnection = _connected(path, read_only)
        _silence(self.connection)
        try:
            self._check_version()
        except BaseException:
            self.close()
            raise

    def _check_version(self) -> None:
        """Raise `InputError` for a file that is no study, or a newer archsim's."""
        names = {name for (name,) in self.rows("SELECT table_name FROM duckdb_tables()")}
        if not names and not self.read_only:
            return
        require("schema" in names, f"{self.path} is a DuckDB file, but not of a study")
        version = self.rows("SELECT version FROM schema")[0][0]
        require(
            version <= VERSION,
            f"{self.path} was written by a newer archsim (its tables are of version {version}, "
            f"and this archsim reads {VERSION}); read it with that: pip install --upgrade archsim",
        )

    @property
    def empty(self) -> bool:
        """Whether no study was begun in it."""
        return not self.rows("SELECT 1 FROM duckdb_tables() WHERE table_name = 'points'")

    @property
    def pointless(self) -> bool:
        """Whether a study was begun that keeps no point."""
        return not self.empty and not self.rows("SELECT 1 FROM points LIMIT 1")

    def create(
        self,
        fields: Mapping[str, Sequence[Value]],
        objectives: Sequence[str],
        provenance: Mapping[str, Any],
    ) -> None:
        """Make the tables, for those of a study without points too."""
        columns = {**OWN, **{name: type_of(values) for name, values in fields.items()}}
        for name in objectives:
            require(name not in columns, f"{name!r} is a field and an objective of the space")
            columns[name] = "DOUBLE"
        listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        with self.transaction():
            run = self.connection.execute
            for name, made in {
                "points": listed,
                "layers": "point UUID, layer VARCHAR, cycles BIGINT",
                "provenance": "name VARCHAR PRIMARY KEY, value VARCHAR",
                "schema": "version INTEGER",
            }.items():
                run(f"CREATE OR REPLACE TABLE {name} ({made})")
            run("INSERT INTO schema VALUES (?)", [VERSION])
            for name, value in provenance.items():
                run("INSERT INTO provenance VALUES (?, ?)", [name, json.dumps(value)])

    def provenance(self) -> dict[str, Any]:
        """What was said of it, by name."""
        found = self.rows("SELECT name, value FROM provenance")
        return {name: json.loads(value) for name, value in found}

    def say(self, name: str, value: Any) -> None:
        """Keep one thing more of where the points are from."""
        self.connection.execute(
            "INSERT OR REPLACE INTO provenance VALUES (?, ?)", [name, json.dumps(value)]
        )

    def rows(self, query: str, given: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""
        return self.connection.execute(query, list(given)).fetchall()

    @contextmanager
    def transaction(self) -> Generator[None]:
        """All of it is written, or nothing.  Raises `InputError` where the disk takes no more."""
        import duckdb

        self.connection.execute("BEGIN")
        try:
            yield
            self.connection.execute("COMMIT")
        except duckdb.Error as error:
            self._roll_back()
            raise self._refusal(error) from error
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        import duckdb

        try:
            self.connection.execute("ROLLBACK")
        except duckdb.Error:
            return  # a transaction that could not be ended is none any more

    def _refusal(self, error: Exception) -> InputError:
        said = str(error).splitlines()[0]
        return InputError(
            f"{self.path} cannot be written: {said}; what was kept before is whole, and the same "
            f"command continues it"
        )

    def write(self, points: Sequence[Table], layers: Sequence[Table]) -> None:
        """Points that are not there yet, and cycles of their layers, in one transaction."""
        with self.transaction():
            for table in points:
                self._insert("points", table)
            for table in layers:
                self._insert("layers", table)

    def _insert(self, name: str, table: Table) -> None:
        self.connection.register("given_rows", table)
        try:
            self.connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM given_rows")
        finally:
            self.connection.unregister("given_rows")

    def copy_points(self, path: Path, form: str) -> None:
        """Write all points to a file.  form: DuckDB's options of COPY.  Raises `InputError`."""
        import duckdb

        text = place_of(path).replace("'", "''")
        try:
            self.connection.execute(f"COPY points TO '{text}' ({form})")
        except duckdb.IOException as error:
            said = str(error).splitlines()[0]
            raise InputError(f"{path.name} cannot be written: {said}") from error

    def close(self) -> None:
        """Let other processes have it."""
        self.connection.close()


def place_of(path: Path) -> str:
    """A path as DuckDB takes it.  Raises `InputError` for one that it cannot be told.

    DuckDB reads ~ at the beginning as the home folder and some beginnings as addresses, so it is
    told whole paths; a backslash is a slash to it, and what is behind a question mark no name.
    """
    place = str(path.absolute())
    try:
        place.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{path} must be a name in UTF-8, as are those of the folders that it lies in: "
            "DuckDB, which keeps studies, takes no other"
        ) from None
    for character, name in (("\\", "backslash"), ("?", "question mark")):
        require(
            character not in place or character == os.sep,
            f"{path} must have no {name} in its name, nor in those of the folders that it lies "
            "in: DuckDB, which keeps studies, takes it for no part of a name",
        )
    return place


def _connected(path: Path, read_only: bool) -> duckdb.DuckDBPyConnection:
    """Who writes waits a moment for one who only looked."""
    import duckdb

    place = place_of(path)
    settings: dict[str, Any] = {"memory_limit": MEMORY, **NO_DOWNLOADS}
    until = time.monotonic() + (0.0 if read_only else LOCK_SECONDS)
    while True:
        try:
            return duckdb.connect(place, read_only=read_only, config=settings)
        except duckdb.Error as error:
            if HELD not in str(error) or time.monotonic() >= until:
                raise InputError(_why_not(path, str(error))) from error
        time.sleep(LOCK_SECONDS / 20)


def _silence(connection: duckdb.DuckDBPyConnection) -> None:
    """Draw no bars beside ours.  A notebook that cannot draw any refuses to be told."""
    import duckdb

    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")


def _why_not(path: Path, said: str) -> str:
    """Why a file cannot be opened."""
    holder = re.search(HELD + r" (.*?) ?\(PID (\d+)\)", said)
    if holder is not None:
        return (
            f"{path} is held by another process: {holder[1].strip() or 'one'} (pid {holder[2]}); "
            f"one at a time writes a study: wait until it has ended, or end it"
        )
    first = said.splitlines()[0]
    if "newer version" in said or "older version" in said.lower():
        return f"{path} was written by another DuckDB: {first}; pip install --upgrade duckdb"
    return f"{path} cannot be opened: {first}"


def arrow() -> Any:
    """The module pyarrow, imported now."""
    return import_module("pyarrow")


def uuids(ids: Sequence[bytes]) -> Any:
    """Hashes as a column of UUIDs."""
    pa = arrow()
    joined = pa.py_buffer(b"".join(ids))
    plain = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(ids), [None, joined])
    return pa.ExtensionArray.from_storage(pa.uuid(), plain)


def uuid_of(one: bytes) -> uuid.UUID:
    """A hash as it is read from the store."""
    return uuid.UUID(bytes=one)


__all__ = [
    "FILE",
    "VERSION",
    "Store",
    "Table",
    "arrow",
    "place_of",
    "quoted",
    "type_of",
    "uuid_of",
    "uuids",
]
