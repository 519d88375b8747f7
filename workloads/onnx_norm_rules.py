"""How normalisations and activations of language models are written out."""

from __future__ import annotations

from math import pi, sqrt

from workloads.onnx_lowering import Writing


def skip_norm(write: Writing) -> None:
    """The sum of two tensors, and a bias, normalised; the sum too, where it is wanted."""
    found = write.attributes(epsilon=1e-12)
    simplified = write.node.op_type == "SkipSimplifiedLayerNormalization"
    last = 3 if simplified else 4
    write.only(range(last + 1), (0, 3))
    bias, wanted = write.given(last), write.wanted(3)
    terms = write.given(0), write.given(1)
    total = write.add("Add", terms, "skip", out="" if bias else wanted)
    if bias:
        total = write.add("Add", (total, bias), "bias", out=wanted)
    if simplified:
        _root_mean_square(write, total, write.given(2), found["epsilon"])
        return
    if write.opset < 17:
        raise write.error(f"it is written out from opset 17 on, not {write.opset}")
    terms = [one for one in (total, write.given(2), write.given(3)) if one]
    write.add("LayerNormalization", terms, "norm", out=write.node.output[0],
              axis=-1, epsilon=found["epsilon"])  # fmt: skip


def simplified_norm(write: Writing) -> None:
    """x / √(mean of squares + ε), times a scale."""
    found = write.attributes(epsilon=1e-5, axis=-1, stash_type=1)
    write.only(range(2), (0,))
    if found["axis"] != -1 and found["axis"] + 1 != write.ranks.get(write.given(0)):
        raise write.error(f"axis must be the last, not {found['axis']}")
    _root_mean_square(write, write.given(0), write.given(1), found["epsilon"])


def _root_mean_square(write: Writing, tensor: str, scale: str, epsilon: float) -> None:
    squares = write.add("Mul", (tensor, tensor), "squares")
    mean = write.add("Add", (write.mean(squares, "mean"), write.number(epsilon)), "epsilon")
    normal = write.add("Div", (tensor, write.add("Sqrt", (mean,), "root")), "normal")
    write.add("Mul", (normal, scale), "norm", out=write.node.output[0])


def gelu(write: Writing) -> None:
    """x/2 · (1 + erf(x / √2)), or by tanh; of the sum with a bias."""
    write.attributes()
    write.only(range(2), (0,))
    x = write.given(0)
    if write.given(1):
        x = write.add("Add", (x, write.given(1)), "bias")
    if write.node.op_type == "FastGelu":
        cube = write.add("Mul", (write.add("Mul", (x, x), "square"), x), "cube")
        cube = write.add("Mul", (cube, write.number(0.044715)), "cubic")
        inner = write.add("Mul", (write.add("Add", (x, cube), "sum"),
                                  write.number(sqrt(2 / pi))), "scaled")  # fmt: skip
        bent = write.add("Tanh", (inner,), "tanh")
    else:
        bent = write.add("Erf", (write.add("Mul", (x, write.number(sqrt(0.5))), "scaled"),), "erf")
    risen = write.add("Mul", (write.add("Add", (bent, write.number(1.0)), "risen"), x), "times")
    write.add("Mul", (risen, write.number(0.5)), "half", out=write.node.output[0])


def quick_gelu(write: Writing) -> None:
    """x · sigmoid(αx)."""
    found = write.attributes(alpha=1.702)
    x = write.given(0)
    scaled = write.add("Mul", (x, write.number(found["alpha"])), "scaled")
    write.add("Mul", (x, write.add("Sigmoid", (scaled,), "sigmoid")), "times",
              out=write.node.output[0])  # fmt: skip


__all__ = ["gelu", "quick_gelu", "simplified_norm", "skip_norm"]
