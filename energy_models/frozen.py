"""A dictionary that nobody changes: what records and caches hand out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, TypeVar, cast

_LEAVES = {int, float, str, bool, type(None)}

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dictionary in all but this: what would change it raises `TypeError`."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this dictionary is of a result or a cache and cannot be changed; copy it")

    __setitem__ = __delitem__ = __ior__ = _refuse  # pyright: ignore
    clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore

    def __reduce__(self) -> tuple[type, tuple[dict[K, V]]]:
        return FrozenDict, (dict(self),)


def frozen(given: Mapping[K, V]) -> FrozenDict[K, V]:
    """The mapping as one that cannot be changed, all that is in it too: lists become tuples."""
    if type(given) is FrozenDict:
        return cast("FrozenDict[K, V]", given)
    values = given.values()
    if _LEAVES.issuperset(map(type, values)):
        return FrozenDict(given)
    return FrozenDict(zip(given, cast("Iterator[V]", map(_still, values)), strict=True))


def _still(value: object) -> object:
    if isinstance(value, dict):
        return frozen(cast("dict[Any, Any]", value))
    if isinstance(value, list):
        return tuple(_still(entry) for entry in cast("list[Any]", value))
    return value
