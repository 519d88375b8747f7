"""LSTM and GRU layers with units dropped: every value of the passes' layers against autograd."""

from typing import Any

import numpy as np
import pytest
from written_networks import written

from workloads.operands import operand_shapes
from workloads.training.dropout import Dropout
from workloads.training.execution import Execution, Values
from workloads.training.step import training_step

torch: Any = pytest.importorskip(
    "torch", reason="gradients are compared with PyTorch's: archsim[train]"
)
torch.set_num_threads(1)

STEPS, BATCH, UNITS = 5, 3, 6
STACK = "one = {kind} 7\ntwo = {kind} 6 both\nend = linear 4 bias dropout\n"


def _cell(kind, gates, state):
    """One step, of the sums of both products."""
    a, b = gates
    h, c = state
    if kind == "lstm":
        i, f, g, o = (a + b).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
    (ar, az, an), (br, bz, bn) = a.chunk(3, 1), b.chunk(3, 1)
    r, z = torch.sigmoid(ar + br), torch.sigmoid(az + bz)
    n = torch.tanh(an + r * bn)
    return (1 - z) * n + z * h, c


def _masked(step, name, x, t):
    site = step.sites.get(name)
    return x if site is None else x * torch.tensor(site.mask[t].copy()) * site.scale


def _direction(step, kind, prefix, x, leaves, sums, hidden, reverse):  # noqa: PLR0913
    w, u = leaves[f"{prefix}/input"][0], leaves[f"{prefix}/steps"][0]
    h = torch.zeros(BATCH, hidden, dtype=torch.float64)
    c, made = h, {}
    for t in reversed(range(STEPS)) if reverse else range(STEPS):
        a = _masked(step, f"{prefix}/input", x[t], t) @ w + sums[f"{prefix}/input"]
        b = _masked(step, f"{prefix}/steps", h, t) @ u + sums[f"{prefix}/steps"]
        h, c = _cell(kind, (a, b), (h, c))
        made[t] = h
    return torch.stack([made[t] for t in range(STEPS)])


def _theirs(step, kind, x, leaves, sums):
    one = _direction(step, kind, "one", x, leaves, sums, 7, False)
    both = [_direction(step, kind, p, one, leaves, sums, 6, r)
            for p, r in (("two", False), ("two/reverse", True))]  # fmt: skip
    two = torch.cat(both, 2)
    end = torch.stack([_masked(step, "end", two[t], t) for t in range(STEPS)])
    one.retain_grad()
    return end.reshape(STEPS * BATCH, -1) @ leaves["end"][0] + sums["end"], one


def _ours(kind, dropout):
    network = written(STACK.format(kind=kind), (STEPS, BATCH, UNITS))
    random = np.random.default_rng(3)
    step = training_step(network, dropout=dropout)
    weights = {one.name: random.normal(size=operand_shapes(one)[1])
               for one in network.matrix_layers}  # fmt: skip
    products: Any = network.matrix_layers
    biases = {one.name: random.normal(size=one.n) for one in products}
    x = random.normal(size=(STEPS, BATCH, UNITS))
    ours = Execution(step, Values({"input": x}, weights, biases))
    ours.forward()
    dy = random.normal(size=network.flow[-1].shape)
    ours.back({"end": dy})
    return step, ours.values, dy


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("case", [0, 1, 2, 3, 4])
def test_all_values_against_autograd(kind, recurrent, case):
    dropout = Dropout(case=case, percent=50, recurrent=recurrent, seed=5) if case else None
    step, values, dy = _ours(kind, dropout)
    leaves = {n: torch.tensor(w, requires_grad=True) for n, w in values.weights.items()}
    sums = {n: torch.tensor(b, requires_grad=True) for n, b in values.biases.items()}
    x = torch.tensor(values.tensors["input"])
    found, one = _theirs(step, kind, x, leaves, sums)
    found.backward(torch.tensor(dy.reshape(found.shape)))
    made = found.detach().numpy().reshape(dy.shape)
    np.testing.assert_allclose(values.tensors["end"], made, rtol=1e-10, atol=1e-12)
    assert set(values.weight_gradients) == set(leaves)
    for name, leaf in leaves.items():
        np.testing.assert_allclose(
            values.weight_gradients[name], leaf.grad.numpy(), rtol=1e-9, atol=1e-11
        )
        np.testing.assert_allclose(
            values.bias_gradients[name], sums[name].grad.numpy(), rtol=1e-9, atol=1e-11
        )
    np.testing.assert_allclose(values.gradients["one"], one.grad.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_without_dropout_the_layers_are_pytorchs(kind):
    _, values, _ = _ours(kind, None)
    theirs = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[kind](UNITS, 7).double()
    with torch.no_grad():
        for number, part in enumerate(("input", "steps")):
            side = "ih" if number == 0 else "hh"
            weight = torch.tensor(values.weights[f"one/{part}"][0].T)
            getattr(theirs, f"weight_{side}_l0").copy_(weight)
            getattr(theirs, f"bias_{side}_l0").copy_(torch.tensor(values.biases[f"one/{part}"]))
        made, _ = theirs(torch.tensor(values.tensors["input"]))
    np.testing.assert_allclose(values.tensors["one"], made.numpy(), rtol=1e-10, atol=1e-12)
