"""Attention written out: queries times keys, softmax, times values; with a cache, and grouped.

All heads that share a key multiply with it in one product: queries are [batch, key heads, heads of
a key × tokens, head width], so that a key is read once for all of them. Masks are added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workloads.onnx_lowering import CachedProducts, Writing

BELOW = -1e30
"""Added where a key is not seen: within the range of float32; of float16 it is an infinity."""


@dataclass(frozen=True, kw_only=True)
class Heads:
    """Queries and keys: heads of each. scale: of the products, 0 for 1 / √width. window: keys that
    a query sees at most, 0 for all. softcap: 0 for none."""

    queries: int
    keys: int
    scale: float = 0.0
    causal: bool = False
    window: int = 0
    softcap: float = 0.0

    @property
    def group(self) -> int:
        """Heads of a key."""
        return self.queries // self.keys


@dataclass(frozen=True, kw_only=True)
class Given:
    """Tensors [batch, tokens, heads, width]: queries, keys and values, of this step; and
    [batch, key heads, tokens, width] of the past, "" without. mask: added to the products, [batch
    or 1, heads or 1, tokens, keys]; "" without."""

    query: str
    key: str
    value: str
    past: tuple[str, str] = ("", "")
    mask: str = ""
    mask_heads: int = 1


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Names of the results; "" for those that nobody wants."""

    keys: str = ""
    values: str = ""


def attention(write: Writing, heads: Heads, given: Given, wanted: Wanted) -> str:
    """[batch, tokens, heads, width] of what the queries see of the values."""
    if heads.queries % heads.keys:
        raise write.error(
            f"heads must be a multiple of the {heads.keys} of keys, not {heads.queries}"
        )
    key, new_key = _kept(write, given.key, given.past[0], wanted.keys, "keys")
    value, new_value = _kept(write, given.value, given.past[1], wanted.values, "values")
    turned = write.add("Transpose", (key,), "keys_turned", perm=[0, 1, 3, 2])
    scores = write.add("MatMul", (_grouped(write, heads, given.query), turned), "scores")
    scores = write.add("Mul", (scores, _scale(write, heads, given.query)), "scale")
    if heads.softcap:
        cap = write.number(heads.softcap)
        scores = write.add("Tanh", (write.add("Div", (scores, cap), "cap"),), "capped")
        scores = write.add("Mul", (scores, cap), "uncap")
    for mask in _masks(write, heads, given, key):
        scores = write.add("Add", (scores, mask), f"mask{len(write.made)}")
    chances = write.add("Softmax", (scores,), "softmax", axis=-1)
    seen = write.add("MatMul", (chances, value), "context")
    if any((*given.past, wanted.keys, wanted.values)):
        write.cached.append(
            CachedProducts(
                kept=(key, value),
                appended=(new_key, new_value),
                readers=(f"{write.name}/scores", f"{write.name}/context"),
            )
        )
    return _ungrouped(write, heads, seen)


def parted(write: Writing, tensor: str, heads: int, part: str) -> str:
    """[batch, tokens, heads · width] as [batch, tokens, heads, width]."""
    return write.reshaped(tensor, (0, 0, heads, -1), part)


def joined(write: Writing, tensor: str, out: str) -> None:
    """The inverse, as a result of the node."""
    write.add("Reshape", (tensor, write.constant([0, 0, -1])), "joined", out=out)


def _kept(write: Writing, new: str, past: str, out: str, part: str) -> tuple[str, str]:
    """All keys or values [batch, heads, tokens, width], and the new ones alone."""
    own = out if out and not past else ""
    turned = write.add("Transpose", (new,), f"{part}_by_head", perm=[0, 2, 1, 3], out=own)
    if not past:
        return turned, turned
    return write.add("Concat", (past, turned), part, axis=2, out=out), turned


def _grouped(write: Writing, heads: Heads, query: str) -> str:
    """[batch, tokens, heads, width] as [batch, key heads, group · tokens, width]."""
    if heads.group == 1:
        return write.add("Transpose", (query,), "queries", perm=[0, 2, 1, 3])
    split = write.reshaped(query, (0, 0, heads.keys, heads.group, -1))
    turned = write.add("Transpose", (split,), "queries", perm=[0, 2, 4, 3, 1])
    merged = write.reshaped(turned, (0, 0, 0, -1))
    return write.add("Transpose", (merged,), "queries_grouped", perm=[0, 1, 3, 2])


def _ungrouped(write: Writing, heads: Heads, seen: str) -> str:
    if heads.group == 1:
        return write.add("Transpose", (seen,), "by_token", perm=[0, 2, 1, 3])
    turned = write.add("Transpose", (seen,), "ungrouped", perm=[0, 1, 3, 2])
    split = write.reshaped(turned, (0, 0, 0, heads.group, -1))
    moved = write.add("Transpose", (split,), "by_token", perm=[0, 4, 1, 3, 2])
    width = write.size(seen, 3)
    shape = write.add("Concat", (write.constant([0, 0, heads.queries]), width), axis=0)
    return write.add("Reshape", (moved, shape))


def _scale(write: Writing, heads: Heads, query: str) -> str:
    if heads.scale:
        return write.number(heads.scale)
    width = write.add("Cast", (write.size(query, 3),), to=1)  # FLOAT
    return write.as_floats(write.add("Reciprocal", (write.add("Sqrt", (width,)),)))


def _masks(write: Writing, heads: Heads, given: Given, key: str) -> list[str]:
    """What is added to the products, each for the rows of all heads that share a key."""
    found: list[str] = []
    if heads.causal:
        mask = _causal(write, heads, given.query, key)
        found.append(_for_groups(write, heads, mask, 1))
    if given.mask:
        found.append(_for_groups(write, heads, given.mask, given.mask_heads))
    return found


def _for_groups(write: Writing, heads: Heads, mask: str, mask_heads: int) -> str:
    """A mask [… , tokens, keys] for group · tokens rows."""
    if heads.group == 1:
        return mask
    if mask_heads != 1:
        raise write.error("a mask of every head is not supported where heads share keys")
    return write.add("Concat", [mask] * heads.group, "mask_of_groups", axis=-2)


def _causal(write: Writing, heads: Heads, query: str, key: str) -> str:
    """[tokens, keys]: the last query sees the last key, and each none that comes behind it."""
    tokens, keys = write.size(query, 1), write.size(key, 2)
    zero, one = write.constant(0), write.constant(1)
    counts = [write.add("Squeeze", (many, write.constant([0]))) for many in (tokens, keys)]
    rows = write.add("Range", (zero, counts[0], one))
    columns = write.add("Range", (zero, counts[1], one))
    rows = write.add("Add", (rows, write.add("Sub", (keys, tokens))))
    rows = write.add("Unsqueeze", (rows, write.constant([1])))
    unseen = write.add("Greater", (columns, rows))
    if heads.window:
        last = write.add("Sub", (rows, write.constant([heads.window])))
        unseen = write.add("Or", (unseen, write.add("LessOrEqual", (columns, last))))
    below = write.constant(BELOW, np.float32)
    mask = write.add("Where", (unseen, below, write.constant(0.0, np.float32)))
    return write.as_floats(mask)


__all__ = ["BELOW", "Given", "Heads", "Wanted", "attention", "joined", "parted"]
