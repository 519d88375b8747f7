"""Operators of language models written out: the same values as ONNX Runtime's own, and layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from workloads.errors import WorkloadError
from workloads.layers import MatMul
from workloads.onnx_import import import_onnx, trace

MS = "com.microsoft"
BATCH, TOKENS, PAST, WIDTH = 2, 3, 4, 8
RANDOM = np.random.default_rng(7)

Arrays = dict[str, NDArray[Any]]


def floats(*shape: int) -> NDArray[np.float32]:
    return RANDOM.normal(size=shape).astype(np.float32)


def model_of(
    operator: str, arrays: Arrays, outputs: dict[str, int], domain: str = "", **more: Any
) -> onnx.ModelProto:
    """One node.  arrays: by name, in the order of its inputs, "-…" an absent one, "c_…" a constant;
    outputs: names and numbers of axes."""
    names = ["" if name.startswith("-") else name for name in arrays]
    opset = more.pop("opset", 23 if not domain else 18)
    node = helper.make_node(operator, names, list(outputs), name="a", domain=domain, **more)
    given = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in arrays.items()
        if not name.startswith(("-", "c_"))
    ]
    made = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * axes)
        for name, axes in outputs.items()
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()
                 if name.startswith("c_")]  # fmt: skip
    graph = helper.make_graph([node], "g", given, made, constants)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def run(model: onnx.ModelProto, arrays: Arrays) -> list[NDArray[Any]]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    given = {name: one for name, one in arrays.items() if name[0] not in "-c"}
    return [np.asarray(one) for one in session.run(None, given)]


def gqa(
    heads: int, keys: int, past: bool, packed: bool = False, **more: Any
) -> tuple[onnx.ModelProto, Arrays]:
    """ONNX Runtime takes several tokens behind a past of one sequence only."""
    batch, width = 1 if past else BATCH, 16
    whole, before = heads + 2 * keys, PAST if past else 0
    arrays: Arrays = {"q": floats(batch, TOKENS, (whole if packed else heads) * width)}
    if packed:
        arrays |= {"-k": floats(), "-v": floats()}
    else:
        arrays |= {name: floats(batch, TOKENS, keys * width) for name in ("k", "v")}
    for name in ("past_k", "past_v"):
        arrays[name if past else f"-{name}"] = floats(batch, keys, PAST, width)
    arrays["lengths"] = np.full(batch, before + TOKENS - 1, np.int32)
    arrays["total"] = np.array(before + TOKENS, np.int32)
    if more.get("do_rotary"):
        arrays |= {"c_cos": floats(16, width // 2), "c_sin": floats(16, width // 2)}
    outputs = {"y": 3, "all_k": 4, "all_v": 4}
    model = model_of("GroupQueryAttention", arrays, outputs, MS, num_heads=heads,
                     kv_num_heads=keys, **more)  # fmt: skip
    return model, arrays


def mha(past: bool = False, **more: Any) -> tuple[onnx.ModelProto, Arrays]:
    keys = 5
    arrays: Arrays = {"q": floats(BATCH, TOKENS, 2 * WIDTH)}
    arrays |= {name: floats(BATCH, keys, 2 * WIDTH) for name in ("k", "v")}
    arrays |= {"c_bias": floats(6 * WIDTH), "-mask": floats()}
    arrays["added"] = floats(1, 2, TOKENS, keys + past * PAST)
    if past:
        arrays |= {name: floats(BATCH, 2, PAST, WIDTH) for name in ("past_k", "past_v")}
    outputs = {"y": 3} | ({"all_k": 4, "all_v": 4} if past else {})
    return model_of("MultiHeadAttention", arrays, outputs, MS, num_heads=2, **more), arrays


def packed(mask: bool, **more: Any) -> tuple[onnx.ModelProto, Arrays]:
    arrays: Arrays = {
        "x": floats(BATCH, TOKENS, 16), "c_w": floats(16, 48), "c_bias": floats(48)
    }  # fmt: skip
    if mask:
        arrays["mask"] = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    return model_of("Attention", arrays, {"y": 3}, MS, num_heads=2, **more), arrays


def own(axes: int, keys: int, past: bool = False, **more: Any) -> tuple[onnx.ModelProto, Arrays]:
    """ONNX's Attention of four heads."""

    def shaped(heads: int, tokens: int) -> NDArray[np.float32]:
        whole = (BATCH, heads, tokens, WIDTH) if axes == 4 else (BATCH, tokens, heads * WIDTH)
        return floats(*whole)

    arrays: Arrays = {"q": shaped(4, TOKENS), "k": shaped(keys, TOKENS), "v": shaped(keys, TOKENS)}
    seen = TOKENS + past * PAST
    if more.pop("mask", True):
        arrays["mask"] = RANDOM.random((TOKENS, seen)) < 0.8
        arrays["mask"][:, 0] = True
    else:
        arrays["-mask"] = floats()
    outputs = {"y": axes}
    if past:
        arrays |= {name: floats(BATCH, keys, PAST, WIDTH) for name in ("past_k", "past_v")}
        outputs |= {"all_k": 4, "all_v": 4}
    counts = {} if axes == 4 else {"q_num_heads": 4, "kv_num_heads": keys}
    return model_of("Attention", arrays, outputs, **counts, **more), arrays


def norm(operator: str, inputs: int, bias: bool = False) -> tuple[onnx.ModelProto, Arrays]:
    arrays: Arrays = {"x": floats(BATCH, TOKENS, WIDTH), "skip": floats(BATCH, TOKENS, WIDTH)}
    arrays |= {f"c_{at}": floats(WIDTH) for at in range(inputs)}
    if bias:
        arrays["c_bias"] = floats(WIDTH)
    if operator == "SimplifiedLayerNormalization":
        del arrays["skip"]
        return model_of(operator, arrays, {"y": 3}, opset=18), arrays
    model = model_of(operator, arrays, {"y": 3}, MS, epsilon=1e-5)
    model.graph.node[0].output.extend(["", "", "sum"])
    model.graph.output.append(helper.make_tensor_value_info("sum", TensorProto.FLOAT, [None] * 3))
    return model, arrays


def rotary(axes: int, places: int, **more: Any) -> tuple[onnx.ModelProto, Arrays]:
    shape = (BATCH, 2, TOKENS, 16) if axes == 4 else (BATCH, TOKENS, 32)
    at = np.array([5]) if places == 1 else RANDOM.integers(0, 9, (BATCH, TOKENS))
    arrays: Arrays = {"x": floats(*shape), "at": at}
    arrays |= {"c_cos": floats(16, 8), "c_sin": floats(16, 8)}
    return model_of("RotaryEmbedding", arrays, {"y": axes}, MS, **more), arrays


def gelu(operator: str, bias: bool, **more: Any) -> tuple[onnx.ModelProto, Arrays]:
    arrays: Arrays = {"x": floats(BATCH, TOKENS, WIDTH)}
    if bias:
        arrays["c_bias"] = floats(WIDTH)
    return model_of(operator, arrays, {"y": 3}, MS, **more), arrays


CASES = {
    "grouped": gqa(4, 2, past=False),
    "grouped, decoding": gqa(4, 2, past=True, scale=0.3, softcap=5.0),
    "grouped, turned": gqa(4, 1, past=True, do_rotary=1),
    "grouped, turned in pairs": gqa(2, 2, past=False, do_rotary=1, rotary_interleaved=1),
    "grouped, packed, a window": gqa(4, 2, past=False, packed=True, local_window_size=2),
    "many heads": mha(),
    "many heads, decoding": mha(past=True, scale=0.5),
    "packed": packed(False, unidirectional=1),
    "packed, a mask": packed(True),
    "ONNX's own": own(3, 4),
    "ONNX's own, grouped, of four axes": own(4, 2, softcap=3.0),
    "ONNX's own, causal": own(3, 2, mask=False, is_causal=1),
    "ONNX's own, decoding": own(4, 2, past=True),
    "norm": norm("SkipLayerNormalization", 2),
    "norm with a bias": norm("SkipLayerNormalization", 2, bias=True),
    "simple norm": norm("SkipSimplifiedLayerNormalization", 1),
    "simple norm alone": norm("SimplifiedLayerNormalization", 1),
    "turned": rotary(3, 2),
    "turned, behind others": rotary(3, 1, interleaved=1),
    "turned, of four axes": rotary(4, 2),
    "gelu": gelu("Gelu", False),
    "gelu with a bias": gelu("BiasGelu", True),
    "fast gelu": gelu("FastGelu", True),
    "quick gelu": gelu("QuickGelu", False, alpha=1.5),
}


@pytest.mark.parametrize("name", CASES)
def test_the_values_are_those_of_the_operator(name: str) -> None:
    model, arrays = CASES[name]
    written = trace(model).model
    assert all(not node.domain and node.op_type != "Attention" for node in written.graph.node)
    for ours, theirs in zip(run(written, arrays), run(model, arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("name", "products", "kept", "appended"),
    [
        ("grouped, decoding", [(2, 6, 7, 16), (2, 6, 16, 7)], 2 * 2 * 7 * 16, 2 * 2 * 3 * 16),
        ("grouped", [(4, 6, 3, 16), (4, 6, 16, 3)], 2 * 2 * 2 * 3 * 16, 2 * 2 * 2 * 3 * 16),
        ("many heads", [(4, 3, 5, 8), (4, 3, 8, 5)], 0, 0),
        ("ONNX's own, decoding", [(4, 6, 7, 8), (4, 6, 8, 7)], 4 * 2 * 7 * 8, 4 * 2 * 3 * 8),
    ],
)
def test_products_and_cache_are_seen(
    name: str, products: list[tuple[int, ...]], kept: int, appended: int
) -> None:
    """A product of each sequence and key, of the tokens of all heads that share it."""
    network = import_onnx(CASES[name][0])
    layers = [one for one in network.matrix_layers if isinstance(one, MatMul)]
    assert [(one.batch, one.m, one.n, one.k) for one in layers] == products
    if not kept:
        assert network.kv_cache is None
        return
    assert network.kv_cache is not None
    assert (network.kv_cache.elements, network.kv_cache.appended) == (kept, appended)
    assert network.kv_cache.readers == ("a/scores", "a/context") == tuple(x.name for x in layers)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (gqa(4, 2, past=False, smooth_softmax=1)[0], "smooth_softmax must be 0, not 1"),
        (gqa(4, 2, past=False, k_quant_type="PER_TENSOR")[0], "attribute 'k_quant_type' is not"),
        (gqa(4, 3, past=False)[0], "multiple of the 3 of keys, not 4"),
        (own(3, 2, qk_matmul_output_mode=1, opset=23)[0], None),
        (mha(do_rotary=1)[0], "attribute 'do_rotary' is not supported; those are num_heads, scale"),
        (gelu("QuickGelu", False, opset=12)[0], "from opset 13 on, not 12"),
        (model_of("MultiHeadAttention", {"q": floats(1, 2, 8)}, {"y": 3}, MS, num_heads=2),
         "keys and values must be tensors of their own"),
        (model_of("Attention", {name: floats(1, 2, 8) for name in "qkv"}, {"y": 3}),
         "how many heads there are must be known"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused(model: onnx.ModelProto, said: str | None) -> None:
    if said is None:
        assert import_onnx(model).matrix_layers
        return
    with pytest.raises(WorkloadError, match=said) as caught:
        import_onnx(model)
    assert "node 'a'" in str(caught.value) and "\n" not in str(caught.value)


def test_values_of_a_run_reach_the_products() -> None:
    """Operands of both products are those of the run: keys as the second operand of the scores."""
    from workloads.operands import from_onnx

    model, arrays = CASES["grouped, decoding"]
    given = {name: one for name, one in arrays.items() if name[0] not in "-c"}
    operands = from_onnx(model, given)
    assert set(operands) == {"a/scores", "a/context"}
    keys = run(model, arrays)[1].reshape(2, 7, 16).transpose(0, 2, 1)
    scores = operands["a/scores"]
    np.testing.assert_allclose(scores.weight * scores.weight_scale, keys, atol=scores.weight_scale)
