"""Faults put into units of the SCNN core, wherever they are placed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from amaranth.hdl import Cat
from faults import Patch, placed_all, seen_input
from faulty_module import faulty_module

from rtl.core import scnn_memories, stream_packer, stream_unpacker
from rtl.core.scnn_memories import BoundedActivations
from rtl.memories.boveda_stream import memories as scnn_stream_memories


def field(kind: type, port: str, name: str, change: Callable[[Any], Any]) -> Patch:
    """The component sees a struct one of whose fields is another."""

    def changed(self: Any, there: Any) -> Any:
        fields = {field: there[field] for field, _ in there.shape()}
        fields[name] = change(fields[name])[: len(fields[name])]
        return Cat(*fields.values())

    return seen_input(kind, port, changed)


def placed(module: Any, name: str, **changes: Callable[[Any], Any]) -> Patch:
    """The components whose names begin so, with some of their parameters changed."""
    return placed_all([module], {f"{name}*": changes})


def rewritten(user: Any, module: Any, kind: str, *fault: str) -> Patch:
    """A component whose source says something else."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        with TemporaryDirectory() as folder:
            copy = faulty_module(module, Path(folder), (fault[0], fault[1]))
        monkeypatch.setattr(user, kind, getattr(copy, kind))

    return patch


def in_bounds(*fault: str) -> Patch:
    """What ends lists behind the last vectors of memories, also of those whose cells fail."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        with TemporaryDirectory() as folder:
            copy = faulty_module(scnn_memories, Path(folder), (fault[0], fault[1]))
        monkeypatch.setattr(BoundedActivations, "elaborate", copy.BoundedActivations.elaborate)

    return patch


def in_packer(*fault: str) -> Patch:
    """What packs values into rows."""
    return rewritten(scnn_stream_memories, stream_packer, "StreamPacker", *fault)


def in_unpacker(*fault: str) -> Patch:
    """What takes them out."""
    return rewritten(scnn_stream_memories, stream_unpacker, "StreamUnpacker", *fault)


__all__ = ["field", "in_bounds", "in_packer", "in_unpacker", "placed", "rewritten"]
