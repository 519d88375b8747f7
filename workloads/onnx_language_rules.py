"""How each operator of language models is written out (`workloads.onnx_lowering`)."""

from __future__ import annotations

import numpy as np

from workloads.onnx_attention import BELOW, Given, Heads, Wanted, attention, joined, parted
from workloads.onnx_lowering import DOMAIN, Rule, Writing
from workloads.onnx_norm_rules import gelu, quick_gelu, simplified_norm, skip_norm

_MASK_TYPES = {9}
"""BOOL, of ONNX's types of elements."""


def _group_query(write: Writing) -> None:
    """Keys and values [batch, tokens, key heads · width], or all three in one tensor; causal.

    Sequences are taken as long as the cache and the tokens are, without padding.
    """
    found = write.attributes(
        num_heads=0, kv_num_heads=0, scale=0.0, softcap=0.0, local_window_size=-1, do_rotary=0,
        rotary_interleaved=0, smooth_softmax=0,
    )  # fmt: skip
    write.only(range(9), range(3))
    if found["smooth_softmax"] > 0:
        raise write.error("smooth_softmax must be 0, not 1")
    heads = Heads(
        queries=found["num_heads"], keys=found["kv_num_heads"], scale=found["scale"], causal=True,
        window=max(found["local_window_size"], 0), softcap=found["softcap"],
    )  # fmt: skip
    parts = _packed_or_not(write, heads)
    past = write.given(3), write.given(4)
    if found["do_rotary"]:
        caches = _positions(write, parts[0], past[0])
        turned = [
            _rotated(write, one, caches, bool(found["rotary_interleaved"]), name)
            for one, name in zip(parts[:2], ("query", "key"), strict=True)
        ]
        parts = (*turned, parts[2])
    given = Given(query=parts[0], key=parts[1], value=parts[2], past=past)
    wanted = Wanted(keys=write.wanted(1), values=write.wanted(2))
    joined(write, attention(write, heads, given, wanted), write.node.output[0])


def _packed_or_not(write: Writing, heads: Heads) -> tuple[str, ...]:
    """Queries, keys and values, [batch, tokens, heads, width] each."""
    counts = heads.queries, heads.keys, heads.keys
    if write.given(1):
        names = zip(write.node.input[:3], counts, ("query", "key", "value"), strict=True)
        return tuple(parted(write, name, count, part) for name, count, part in names)
    whole = parted(write, write.given(0), sum(counts), "qkv")
    ends = np.cumsum((0, *counts)).tolist()
    return tuple(
        write.add("Slice", (whole, *(write.constant([at]) for at in (low, high, 2))), part)
        for low, high, part in zip(ends, ends[1:], ("query", "key", "value"), strict=False)
    )


def _positions(write: Writing, query: str, past: str) -> tuple[str, str]:
    """Rows of both caches of angles, of the tokens behind the past: [tokens, 1, width / 2]."""
    tokens = write.size(query, 1)
    first = write.size(past, 2) if past else write.constant([0])
    last = write.add("Add", (first, tokens))
    rows = [
        write.add("Slice", (write.given(at), first, last, write.constant([0]))) for at in (7, 8)
    ]
    cos, sin = (write.add("Unsqueeze", (one, write.constant([1]))) for one in rows)
    return cos, sin


def _rotated(
    write: Writing, tensor: str, caches: tuple[str, str], interleaved: bool, part: str
) -> str:
    """[batch, tokens, heads, width], pairs of elements turned by their angles."""
    cos, sin = caches
    if interleaved:
        pairs = write.reshaped(tensor, (0, 0, 0, -1, 2))
        halves = write.split(pairs, 2, -1, f"{part}_pairs")
        first, second = (write.add("Squeeze", (one, write.constant([-1]))) for one in halves)
    else:
        first, second = write.split(tensor, 2, -1, f"{part}_halves")

    def turned(own: str, other: str, operator: str, name: str) -> str:
        straight = write.add("Mul", (own, cos), f"{part}_{name}_cos")
        across = write.add("Mul", (other, sin), f"{part}_{name}_sin")
        return write.add(operator, (straight, across), f"{part}_{name}")

    real, imaginary = turned(first, second, "Sub", "first"), turned(second, first, "Add", "second")
    if not interleaved:
        return write.add("Concat", (real, imaginary), f"{part}_rotary", axis=-1)
    axis = write.constant([-1])
    both = [write.add("Unsqueeze", (one, axis)) for one in (real, imaginary)]
    return write.reshaped(write.add("Concat", both, f"{part}_rotary", axis=-1), (0, 0, 0, -1))


def _rotary(write: Writing) -> None:
    """ONNX Runtime's RotaryEmbedding, of 3 axes, or of 4: [batch, heads, tokens, width]."""
    found = write.attributes(
        interleaved=0, num_heads=0, rotary_embedding_dim=0, scale=1.0, is_packed_batching=0
    )
    write.only(range(4), (0,))
    for name, value in (("rotary_embedding_dim", 0), ("scale", 1.0), ("is_packed_batching", 0)):
        if found[name] != value:
            raise write.error(f"{name} must be {value}, not {found[name]}")
    tensor, whole = write.given(0), write.ranks.get(write.given(0)) == 4
    if whole:
        tensor = write.add("Transpose", (tensor,), "by_token", perm=[0, 2, 1, 3])
    else:
        half = write.heads.get(write.given(2))
        if half is None:
            raise write.error("how wide the tables of angles are must be known")
        tensor = write.reshaped(tensor, (0, 0, -1, 2 * half), "by_head")
    caches = [_gathered(write, write.given(at), tensor) for at in (2, 3)]
    interleaved = bool(found["interleaved"])
    turned = _rotated(write, tensor, (caches[0], caches[1]), interleaved, "input")
    if whole:
        write.add("Transpose", (turned,), "turned", perm=[0, 2, 1, 3], out=write.node.output[0])
    else:
        joined(write, turned, write.node.output[0])


def _gathered(write: Writing, table: str, tensor: str) -> str:
    """Angles of each token, [batch or 1, tokens, 1, width / 2]: at its own place, or, of one
    number, behind that many."""
    places, rank = write.given(1), write.ranks.get(write.given(1))
    if rank not in (1, 2):
        raise write.error("the places of tokens must have 1 or 2 axes")
    if rank == 1:
        tokens = write.add("Squeeze", (write.size(tensor, 1), write.constant([0])))
        steps = write.add("Range", (write.constant(0), tokens, write.constant(1)))
        behind = write.add("Add", (places, steps), f"places{len(write.made)}")
        places = write.add("Unsqueeze", (behind, write.constant([0])))
    rows = write.add("Gather", (table, places), f"angles{len(write.made)}")
    return write.add("Unsqueeze", (rows, write.constant([2])))


def _multi_head(write: Writing) -> None:
    """Queries, keys and values [batch, tokens, heads · width], with a bias of all three."""
    found = write.attributes(num_heads=0, scale=0.0, unidirectional=0, mask_filter_value=0.0)
    write.only((0, 1, 2, 3, 5, 6, 7), range(3))
    if not (write.given(1) and write.given(2)):
        raise write.error("keys and values must be tensors of their own, not packed")
    for at in range(3):
        if write.ranks.get(write.given(at), 3) != 3:
            raise write.error(f"input {at} must have 3 axes, not {write.ranks[write.given(at)]}")
    count = found["num_heads"]
    heads = Heads(queries=count, keys=count, scale=found["scale"],
                  causal=bool(found["unidirectional"]))  # fmt: skip
    parts = [write.given(at) for at in range(3)]
    if write.given(3):
        if len(set(parts)) and write.ranks.get(write.given(3)) not in (None, 1):
            raise write.error("the bias must have 1 axis")
        biases = write.split(write.given(3), 3, 0, "biases")
        parts = [write.add("Add", pair, f"bias{at}") for at, pair in
                 enumerate(zip(parts, biases, strict=True))]  # fmt: skip
    query, key, value = (
        parted(write, one, count, name)
        for one, name in zip(parts, ("query", "key", "value"), strict=True)
    )
    given = Given(
        query=query, key=key, value=value, past=(write.given(6), write.given(7)),
        mask=write.given(5),
    )  # fmt: skip
    wanted = Wanted(keys=write.wanted(1), values=write.wanted(2))
    joined(write, attention(write, heads, given, wanted), write.node.output[0])


def _packed(write: Writing) -> None:
    """ONNX Runtime's Attention: one product makes queries, keys and values of the input."""
    found = write.attributes(num_heads=0, scale=0.0, unidirectional=0, mask_filter_value=-1e4)
    write.only((0, 1, 2, 3, 5), (0,))
    count = found["num_heads"]
    made = write.add("MatMul", (write.given(0), write.given(1)), "qkv")
    if write.given(2):
        made = write.add("Add", (made, write.given(2)), "qkv_bias")
    parts = write.split(made, 3, -1, "parts")
    query, key, value = (
        parted(write, one, count, name)
        for one, name in zip(parts, ("query", "key", "value"), strict=True)
    )
    masks = [write.given(5)] if write.given(5) else []
    if write.given(3):
        masks.append(_padding(write, write.given(3), found["mask_filter_value"]))
    mask = write.add("Add", masks, "masks") if len(masks) > 1 else "".join(masks)
    heads = Heads(queries=count, keys=count, scale=found["scale"],
                  causal=bool(found["unidirectional"]))  # fmt: skip
    given = Given(query=query, key=key, value=value, mask=mask)
    joined(write, attention(write, heads, given, Wanted()), write.node.output[0])


def _padding(write: Writing, mask: str, below: float) -> str:
    """A mask [batch, keys] of whole numbers, 0 where a key is not seen: as [batch, 1, 1, keys]."""
    if write.ranks.get(mask) != 2:
        raise write.error("the mask must have 2 axes, batch and keys")
    seen = write.as_floats(mask, "seen")
    unseen = write.add("Sub", (write.number(1.0), seen), "unseen")
    added = write.add("Mul", (unseen, write.number(below)), "padding")
    return write.add("Unsqueeze", (added, write.constant([1, 2])))


def _attention(write: Writing) -> None:
    """ONNX's own, of 3 axes with numbers of heads, or of 4: [batch, heads, tokens, width]."""
    found = write.attributes(
        q_num_heads=0, kv_num_heads=0, scale=0.0, softcap=0.0, is_causal=0,
        softmax_precision=1, qk_matmul_output_mode=0,
    )  # fmt: skip
    write.only(range(6), range(3))
    inputs = [write.given(at) for at in range(3)]
    whole = write.ranks.get(inputs[0]) == 4
    counts = [found["q_num_heads"], found["kv_num_heads"]]
    if whole:
        counts = [write.heads.get(name, 0) for name in inputs[:2]]
    if not all(counts):
        raise write.error("how many heads there are must be known")
    if found["is_causal"] and write.given(4):
        raise write.error("is_causal must be 0 where there is a past, not 1")
    mask, mask_heads = write.given(3), 1
    if mask:
        mask_heads = write.heads.get(mask, 0) if write.ranks.get(mask) == 4 else 1
        mask = _as_added(write, mask)
    heads = Heads(queries=counts[0], keys=counts[1], scale=found["scale"],
                  causal=bool(found["is_causal"]), softcap=found["softcap"])  # fmt: skip
    parts = [
        write.add("Transpose", (one,), f"{name}_by_token", perm=[0, 2, 1, 3])
        if whole
        else parted(write, one, heads_of, name)
        for one, heads_of, name in zip(
            inputs, (counts[0], counts[1], counts[1]), ("query", "key", "value"), strict=True
        )
    ]
    given = Given(query=parts[0], key=parts[1], value=parts[2], mask=mask, mask_heads=mask_heads,
                  past=(write.given(4), write.given(5)))  # fmt: skip
    seen = attention(write, heads, given, Wanted(keys=write.wanted(1), values=write.wanted(2)))
    if whole:
        write.add("Transpose", (seen,), "by_head", perm=[0, 2, 1, 3], out=write.node.output[0])
    else:
        joined(write, seen, write.node.output[0])


def _as_added(write: Writing, mask: str) -> str:
    """A mask of true and false as one of 0 and below all; another as it is."""
    if write.kinds.get(mask) not in _MASK_TYPES:
        return mask
    zero, below = write.number(0.0), write.number(BELOW)
    return write.add("Where", (mask, zero, below), "mask")


RULES: dict[tuple[str, str], Rule] = {
    ("", "Attention"): _attention,
    ("", "SimplifiedLayerNormalization"): simplified_norm,
    (DOMAIN, "Attention"): _packed,
    (DOMAIN, "MultiHeadAttention"): _multi_head,
    (DOMAIN, "GroupQueryAttention"): _group_query,
    (DOMAIN, "RotaryEmbedding"): _rotary,
    (DOMAIN, "SkipLayerNormalization"): skip_norm,
    (DOMAIN, "SkipSimplifiedLayerNormalization"): skip_norm,
    (DOMAIN, "Gelu"): gelu,
    (DOMAIN, "BiasGelu"): gelu,
    (DOMAIN, "FastGelu"): gelu,
    (DOMAIN, "QuickGelu"): quick_gelu,
}
"""By domain and operator."""


__all__ = ["RULES"]
