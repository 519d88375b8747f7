"""Which banks of a compressed scratchpad must be read, step by step in plain Python.

Nothing is forgotten here: every bank remembers the tile, not the half, whose row or entry it holds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Held = dict[Any, Any]
"""By bank, what its output holds."""


def width_of(values: Sequence[int], bits: int, signed: bool) -> int:
    """The least width of a group in containers of so many bits."""
    most = max(abs(int(value)) for value in values).bit_length()
    return min(max(most + signed, 2 if signed else 1), bits)


def places_of(widths: Sequence[int], unit_words: int, bits: int) -> list[tuple[int, bool]]:
    """Of each word of a group column: its first row, and whether it ends in the next."""
    found: list[tuple[int, bool]] = []
    row = at = 0
    for number, width in enumerate(widths):
        if number % unit_words == 0 and at:
            row, at = row + 1, 0
        found.append((row, at + width > bits))
        row, at = row + (at + width) // bits, (at + width) % bits
    return found


def rows_of(places: Sequence[tuple[int, bool]]) -> int:
    """Rows up to the last word's end."""
    row, spills = places[-1]
    return row + spills + 1


class Tile:
    """A tile that is stored: where its words are looked for [columns][words], and its entries.

    store: what `memory`, of so many `lanes` of `bits`, holds; its cells fail as `faulty` says, None
    if they do not, in that half.
    """

    def __init__(self, words: Sequence[Sequence[int]], store: Any, half: int = 0) -> None:
        group, bits, size = store.memory.group, store.bits, store.memory.unit_words
        lanes = range(0, store.lanes, group)
        widths = [
            [width_of(word[at : at + group], bits, store.signed) for word in words] for at in lanes
        ]
        meant = [places_of(one, size, bits) for one in widths]
        self.written = [rows_of(one) for one in meant]
        self.entries = len(meant) * len(words[::size])
        self.columns = meant
        if store.faulty is not None:
            first_rows = [[row for row, _ in one[::size]] for one in meant]
            self.columns = [
                looked_for(store, half, number, (first, own))
                for number, (first, own) in enumerate(zip(first_rows, widths, strict=True))
            ]

    @property
    def rows(self) -> int:
        """Of all columns."""
        return sum(self.written)


def looked_for(
    store: Any, half: int, column: int, entries: tuple[Sequence[int], Sequence[int]]
) -> list[tuple[int, bool]]:
    """Places of the words of a group column as failing entries, of first rows and widths, have
    them; a row at a time, a bit at a time."""
    first_rows, widths = entries
    size, bits = store.memory.unit_words, store.bits
    row_bits = max((store.memory.rows(store.lanes * bits) - 1).bit_length(), 1)
    field = (bits - 1).bit_length()
    entry_bits = row_bits + size * field
    columns = store.lanes // store.memory.group
    faults = store.faulty.fault_map(store.use, "directory", columns * entry_bits)
    found: list[tuple[int, bool]] = []
    for unit, first in enumerate(first_rows):
        own = widths[unit * size : (unit + 1) * size]
        entry = first | sum(w - 1 << row_bits + at * field for at, w in enumerate(own))
        masks = faults.masks((half << 30) + unit, 1)
        if_zero, if_one = (
            int.from_bytes(one.tobytes(), "little") >> column * entry_bits for one in masks
        )
        entry = (entry & ~if_one) | (~entry & if_zero)
        row, at = entry % (1 << row_bits), 0
        for place in range(len(own)):
            width = (entry >> row_bits + place * field) % bits + 1
            found.append(((row + at // bits) % (1 << row_bits), at % bits + width > bits))
            at += width
    return found


class Banks:
    """What the outputs of all banks hold, and how often they were read."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.held: Held = {}
        self.counts = {"row_reads": 0, "entry_reads": 0}

    def read(self, tile: Tile, wanted: Sequence[tuple[int, int]]) -> None:
        """The word of every wanted lane: (lane, word); lanes of a piece share their banks."""
        group, straddles = self.store.memory.group, self.store.straddles
        for word in sorted({word for _, word in wanted}):
            unit = word // self.store.memory.unit_words
            bank = ("entry", unit % 2 if straddles else 0)
            self._want(bank, (tile, unit), "entry_reads", len(tile.columns))
        pieces = {(lane if straddles else lane // group, lane // group, w) for lane, w in wanted}
        for piece, column, word in sorted(pieces):
            row, spills = tile.columns[column][word]
            for one in (row, row + 1)[: 1 + spills]:
                if one >= tile.written[column]:
                    continue
                self._want((piece, one % 2), (tile, one), "row_reads", 1)

    def _want(self, bank: Any, what: Any, count: str, times: int) -> None:
        if self.held.get(bank) != what:
            self.held[bank] = what
            self.counts[count] += times


def expected_counts(store: Any, steps: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Counts of a scratchpad alone, from its inputs in each cycle."""
    banks, written, entries = Banks(store), 0, 0
    tiles: dict[int, Tile] = {}
    words: list[list[int]] = []
    ready: list[tuple[int, int, Tile]] = []
    for cycle, inputs in enumerate(steps):
        for at, half, tile in [one for one in ready if one[0] <= cycle]:
            tiles[half] = tile
            ready.remove((at, half, tile))
        if inputs.get("read"):
            lanes = range(store.lanes)
            asked = inputs["read"] if store.straddles else (1 << store.lanes) - 1
            later = inputs.get("read_next", 0)
            wanted = [
                (lane, inputs["read_address"] + (later >> lane & 1))
                for lane in lanes
                if asked >> lane & 1
            ]
            banks.read(tiles[inputs["read_half"]], wanted)
        if inputs.get("write"):
            words.append(unpacked(inputs["write_data"], store))
            if inputs["write_last"]:
                tile = Tile(words, store, inputs["write_half"])
                written += tile.rows * (store.memory.group if store.straddles else 1)
                entries += tile.entries
                ready.append((cycle + 1, inputs["write_half"], tile))
                words = []
    return {**banks.counts, "row_writes": written, "entry_writes": entries}


def unpacked(word: int, store: Any) -> list[int]:
    """The lanes of a word."""
    size = 1 << store.bits
    lanes = [word >> lane * store.bits & size - 1 for lane in range(store.lanes)]
    return [value - size if store.signed and value >= size // 2 else value for value in lanes]


__all__ = ["Banks", "Tile", "expected_counts", "places_of", "rows_of", "width_of"]
