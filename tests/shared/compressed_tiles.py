"""Words as the only tile of a compressed ifmap."""

from typing import Any

import numpy as np

from archsim.codecs.boveda_format import BovedaFormat
from archsim.memories.boveda.scratchpad import Boveda
from archsim.memories.boveda.store import Store
from archsim.memories.boveda.tiles import StoredTiles
from archsim.memories.boveda.widths import tile_widths
from archsim.tiled import commands as cmd


def tile_of(words: Any, form: BovedaFormat, unit_words: int = 16) -> StoredTiles:
    """A pixel a word, a channel a lane: [words, lanes]."""
    count, lanes = words.shape
    row = np.zeros((1, cmd.WALK_COLUMNS), np.int64)
    row[0, [cmd.TILE_IMAGES, cmd.HEIGHT]] = 1
    row[0, [cmd.TILE_CHANNELS, cmd.PITCH, cmd.IFMAP_WORDS]] = lanes, words.size, count
    ifmap = words.reshape(1, 1, 1, count, lanes)
    memory = Boveda(capacity_bytes=1 << 16, group=form.group, unit_words=unit_words)
    store = Store(name="ifmap", memory=memory, lanes=lanes, form=form)
    starts, widths = tile_widths(store, row, ifmap)
    only = np.zeros(1, np.int64)
    return StoredTiles(
        store=store, tiles=row, first=only, tile_of=only, starts=starts, widths=widths
    )


__all__ = ["tile_of"]
