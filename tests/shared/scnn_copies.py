"""What windows need of neighbours, in the stepped sparse core: copied sum by sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from scnn_lists import Pe, Side


class Copies:
    """The copies of a pass, behind its halos."""

    rows: Side
    columns: Side
    pes: list[Pe]
    groups: list[list[int]]

    def copy_cycles(self, group: int) -> Iterator[None]:
        """What windows need of a neighbour: columns of own rows, then rows of all they hold."""
        filters, rows, columns = len(self.groups[group]), self.rows, self.columns
        for by in (-1, 1):
            for _ in range(filters * rows.most_owned() * columns.most_copied(-by)):
                yield
                yield
            self.copy(group, 0, by)
        for by in (-1, 1):
            for _ in range(filters * rows.most_copied(-by) * columns.most_held()):
                yield
                yield
            self.copy(group, by, 0)

    def copy(self, group: int, down: int, right: int) -> None:
        """Own sums to the neighbour there, in whose windows they are."""
        moved: list[tuple[Counter[Any], Any, int]] = []
        for pe in self.pes:
            there = pe.row + down, pe.column + right
            if not (0 <= there[0] < self.rows.pes and 0 <= there[1] < self.columns.pes):
                continue
            rows, columns = self.rows.owned(pe.row), self.columns.held(pe.column)
            if right:
                columns = self.columns.copied(there[1], -right)
            else:
                rows = self.rows.copied(there[0], -down)
            to = self.pes[there[0] * self.columns.pes + there[1]].sums[group % 2]
            for p in rows:
                for q in columns:
                    for k in range(len(self.groups[group])):
                        moved.append((to, (p, q, k), self.kept(pe.sums[group % 2], (p, q, k))))
                        pe.figures["copy_sums"] += 1
        for sums, where, value in moved:
            assert not sums[where], "a copy is added to a sum"
            sums[where] += value

    def kept(self, sums: Counter[Any], where: Any) -> int:
        """A sum that is read, and stays."""
        return sums[where]
