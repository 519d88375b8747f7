"""A whole step of random graphs, as the layers that machines are given, against autograd."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_networks import written

from workloads.errors import WorkloadError
from workloads.layers import MatMul
from workloads.operands import operand_shapes
from workloads.training.execution import EPSILON, Execution, Values
from workloads.training.step import training_step

torch: Any = pytest.importorskip(
    "torch", reason="gradients are compared with PyTorch's: archsim[train]"
)
functional = torch.nn.functional
torch.set_num_threads(1)

OPERATORS = (
    "conv {k} 3x3 +1 bias relu", "conv {k} 3x3 /2 +1", "conv {k} 1x1 /2 relu", "conv {k} 5x3 +2",
    "conv 4 3x3 +1 groups=2 bias relu", "conv 4 3x3 +1 depthwise", "maxpool 2x2 /2",
    "maxpool 3x3 /2 +1", "maxpool 3x3 /1 +1", "avgpool 2x2 /2", "avgpool 3x3 /2 +1 ceil", "Relu",
    "Clip", "BatchNormalization", "add", "concat", "fc 5 bias relu",
)  # fmt: skip


@st.composite
def graphs(draw):
    """Lines of the notation: each reads any tensor before that it can read."""
    shapes: dict[str, tuple[int, ...]] = {"input": (2, 4, 9, 8)}
    lines: list[str] = []
    for number in range(draw(st.integers(2, 7))):
        words = draw(st.sampled_from(OPERATORS)).format(k=4)
        sources = [draw(st.sampled_from(sorted(shapes)))]
        shape = shapes[sources[0]]
        if words in ("add", "concat"):
            alike = [n for n, s in shapes.items() if s[0] == shape[0] and s[2:] == shape[2:]
                     and (words == "concat" or s == shape)]  # fmt: skip
            sources.append(draw(st.sampled_from(sorted(alike))))
        line = f"t{number} = {words} from {' '.join(sources)}"
        try:
            made = written("\n".join([*lines, line]), shapes["input"])
        except WorkloadError:
            continue
        if np.prod(made.flow[-1].shape) > 2000:
            continue
        lines.append(line)
        shapes[f"t{number}"] = made.flow[-1].shape
    return "\n".join(["t = conv 4 3x3 +1 relu", *lines])


def _torch_node(node, reads, layer, weight, bias, normalised):
    x, operator = reads[0], node.operator
    pool = node.pool
    if isinstance(layer, MatMul):
        made = x.reshape(layer.m, layer.k) @ weight[0]
        made = made if bias is None else made + bias
    elif layer is not None:
        made = functional.conv2d(
            x, weight, bias, stride=layer.stride_height, padding=(layer.pad_top, layer.pad_left),
            groups=layer.groups,
        )  # fmt: skip
    elif operator == "MaxPool":
        return functional.max_pool2d(x, pool.window, pool.stride, pool.pad, ceil_mode=pool.ceil)
    elif operator == "AveragePool":
        return functional.avg_pool2d(
            x, pool.window, pool.stride, pool.pad, ceil_mode=pool.ceil, count_include_pad=False
        )
    else:
        made = {
            "Relu": torch.relu,
            "Clip": lambda t: torch.clamp(t, 0, 6),
            "BatchNormalization": normalised,
            "Add": lambda t: sum(reads[1:], t),
            "Concat": lambda _: torch.cat(reads, 1),
            "GlobalAveragePool": lambda t: t.mean((2, 3), keepdim=True),
        }[operator](x)
    made = normalised(made) if node.normalised else made
    return torch.relu(made) if node.relu else made


def _normalised(x):
    return functional.batch_norm(x, None, None, training=True, eps=EPSILON)


def _both(network, frozen=()):
    """Ours and PyTorch's: tensors, weights, biases, with gradients."""
    random = np.random.default_rng(7)
    step = training_step(network, frozen=frozen)
    layers = {layer.name: layer for layer in network.matrix_layers}
    weights = {n: random.normal(size=operand_shapes(layer)[1]) for n, layer in layers.items()}
    biases = {n: random.normal(size=layer.n if isinstance(layer, MatMul) else layer.filters)
              for n, layer in layers.items() if layer.bias}  # fmt: skip
    x = random.normal(size=(2, 4, 9, 8))
    ours = Execution(step, Values({"input": x}, weights, biases))
    ours.forward()
    theirs = {"input": torch.tensor(x)}
    leaves = {n: torch.tensor(w, requires_grad=n not in frozen) for n, w in weights.items()}
    sums = {n: torch.tensor(b, requires_grad=n not in frozen) for n, b in biases.items()}
    for node in network.flow:
        name = node.layers[0] if node.layers and node.layers[0] in layers else ""
        reads = [theirs[one] for one in node.reads]
        theirs[node.name] = _torch_node(
            node, reads, layers.get(name), leaves.get(name), sums.get(name), _normalised
        )
        if theirs[node.name].requires_grad:
            theirs[node.name].retain_grad()
    ends = [node for node in network.flow if step.backward.ends(node)]
    seeds = {node.name: random.normal(size=node.shape) for node in ends}
    torch.autograd.backward(
        [theirs[n] for n in seeds if theirs[n].requires_grad],
        [torch.tensor(s) for n, s in seeds.items() if theirs[n].requires_grad],
    )
    ours.back({n: s for n, s in seeds.items() if n in step.backward.learning})
    return step, ours.values, theirs, leaves, sums


def _same(ours, theirs):
    np.testing.assert_allclose(ours, theirs.grad.numpy(), rtol=1e-8, atol=1e-9)


@given(graphs(), st.booleans())
@settings(max_examples=12)
def test_random_graphs_against_autograd(text, normalised):
    network = written(text, (2, 4, 9, 8), normalised=normalised)
    step, values, theirs, leaves, sums = _both(network)
    for node in network.flow:
        found = values.tensors[node.name]
        np.testing.assert_allclose(found, theirs[node.name].detach().numpy(), rtol=1e-9, atol=1e-9)
    for name in step.backward.learning:
        if theirs[name].grad is not None:
            _same(values.gradients[name], theirs[name])
    assert set(values.weight_gradients) == set(leaves)
    for name, leaf in leaves.items():
        _same(values.weight_gradients[name], leaf)
    for name, leaf in sums.items():
        _same(values.bias_gradients[name], leaf)


def test_frozen_layers_against_autograd():
    network = written(
        "a = conv 4 3x3 bias relu\nb = conv 4 3x3 /2 +1 bias relu\nc = conv 4 1x1\n"
        "d = conv 4 1x1 from b\ns = add from c d\n",
        (2, 4, 9, 8),
    )
    _, values, theirs, leaves, _ = _both(network, frozen=["a", "c"])
    assert set(values.weight_gradients) == {"b", "d"}
    for name in ("b", "d"):
        _same(values.weight_gradients[name], leaves[name])
    assert "a" not in values.gradients and theirs["a"].grad is None


def test_values_that_are_not_computed_name_their_node():
    step = training_step(written("a = conv 2 3x3\nb = Sigmoid\n"))
    layer = step.backward.network.matrix_layers[0]
    values = Values({"input": np.zeros((2, 3, 8, 8))}, {"a": np.zeros(operand_shapes(layer)[1])})
    with pytest.raises(WorkloadError, match="values of node b are not computed here: its operator"):
        Execution(step, values).forward()
