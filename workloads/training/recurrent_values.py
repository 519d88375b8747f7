"""LSTM and GRU layers with values, forth and back through time, by the layers of the passes.

The equations are PyTorch's (`torch.nn.LSTM`, `torch.nn.GRU`), gates in its order: i, f, g, o of an
LSTM, r, z, n of a GRU, whose reset gate multiplies the product with the state and its bias.  States
begin at 0.  Units that are dropped are read as 0, the others times the site's scale.

Weights [1, inputs, gates · hidden] and biases [gates · hidden] are named by the product's layer:
NAME/input, NAME/steps; those of a second, reverse direction NAME/reverse/input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from workloads.flow import Node
from workloads.layers import MatMul
from workloads.training.compacted import Compacted
from workloads.training.dropout import Site
from workloads.training.pass_layer import Array, Pass, PassLayer, Tensors
from workloads.training.step import TrainingStep


@dataclass(eq=False)
class Product:
    """One of the two products of a layer, of all steps: rows are [steps · batch].

    x: what it reads, units that are dropped being 0; y: what it makes, with its bias; dx, dy, dw,
    db: gradients.
    """

    step: TrainingStep
    layer: MatMul
    batch: int
    w: Array
    b: Array | None
    x: Array = field(init=False)
    y: Array = field(init=False)
    dx: Array = field(init=False)
    dy: Array = field(init=False)
    dw: Array = field(init=False)

    def __post_init__(self) -> None:
        layer = self.layer
        self.x = np.zeros((1, layer.m, layer.k), self.w.dtype)
        self.y = np.zeros((1, layer.m, layer.n), self.w.dtype)
        self.dx, self.dy, self.dw = (np.zeros_like(one) for one in (self.x, self.y, self.w))

    @property
    def site(self) -> Site | None:
        return self.step.sites.get(self.layer.name)

    def rows(self, t: int) -> slice:
        return slice(t * self.batch, (t + 1) * self.batch)

    def dropped(self, x: Array, t: int) -> Array:
        """[batch, units] as the product reads it at a step, and as its gradient comes back."""
        site = self.site
        return x if site is None else x * site.mask[t] * site.scale

    def forward(self, t: int | None = None) -> None:
        """Of one step, or of all."""
        for part in self._at("FP", t):
            self._compute(part, self.y, t)
        if self.b is not None:
            rows = slice(None) if t is None else self.rows(t)
            self.y[:, rows] += self.b

    def back(self, t: int | None = None) -> None:
        """Gradients of what it reads, of one step or of all."""
        for part in self._at("BP", t):
            self._compute(part, self.dx, t)

    def learn(self) -> None:
        """The gradient of its weight."""
        for part in self._at("WG", None):
            self._compute(part, self.dw, None)

    def _at(self, kind: Pass, t: int | None) -> Iterator[PassLayer]:
        for part in self.step.parts(kind, self.layer):
            alone = isinstance(part, Compacted) and not part.of_all_steps
            if (
                t is None
                or not alone
                or (isinstance(part, Compacted) and part.rows == self.rows(t))
            ):
                yield part

    def _compute(self, part: PassLayer, into: Array, t: int | None) -> None:
        """A layer's products; of a layer of all steps only those of step t, where one is given."""
        made = part.ifmap(Tensors(x=self.x, w=self.w, dy=self.dy)) @ part.weight(
            Tensors(x=self.x, w=self.w, dy=self.dy)
        )
        if t is None or made.shape[1] == self.batch:
            part.put(made, into)
            return
        whole = np.zeros_like(into)
        part.put(made, whole)
        into[:, self.rows(t)] = whole[:, self.rows(t)]


@dataclass(eq=False)
class Direction:
    """One direction of a layer: its two products, its states and gates by step."""

    node: Node
    input: Product
    state: Product
    reverse: bool
    gates: dict[int, tuple[Array, ...]] = field(default_factory=dict[int, tuple[Array, ...]])
    cells: dict[int, Array] = field(default_factory=dict[int, Array])
    states: dict[int, Array] = field(default_factory=dict[int, Array])

    @property
    def times(self) -> list[int]:
        """Steps in the order in which they are computed."""
        steps = range(self.node.shape[0])
        return list(reversed(steps)) if self.reverse else list(steps)

    def forward(self, x: Array) -> Array:
        """[steps, batch, inputs] to [steps, batch, hidden]."""
        for t in self.times:
            self.input.x[0, self.input.rows(t)] = self.input.dropped(x[t], t)
        self.input.forward()
        hidden = self.state.layer.k
        h = np.zeros((x.shape[1], hidden), x.dtype)
        c = np.zeros_like(h)
        for t in self.times:
            rows = self.state.rows(t)
            self.states[t] = h
            self.state.x[0, rows] = self.state.dropped(h, t)
            self.state.forward(t)
            a, b = self.input.y[0, rows], self.state.y[0, rows]
            if self.node.operator == "LSTM":
                h, c = self._lstm(t, a + b, c)
            else:
                h = self._gru(t, a, b, h)
        after = dict(zip(self.times, [*(self.states[t] for t in self.times[1:]), h], strict=True))
        return np.stack([after[t] for t in range(len(after))])

    def back(self, dy: Array) -> Array:
        """The gradient of what it makes to that of what it reads; both in the shapes of those."""
        dh = np.zeros_like(dy[0])
        dc = np.zeros_like(dh)
        for t in reversed(self.times):
            dh = dh + dy[t]
            rows = self.state.rows(t)
            if self.node.operator == "LSTM":
                gates, dc = self._lstm_back(t, dh, dc)
                self.input.dy[0, rows] = self.state.dy[0, rows] = gates
                kept = np.zeros_like(dh)
            else:
                kept = self._gru_back(t, dh, rows)
            self.state.back(t)
            dh = kept + self.state.dropped(self.state.dx[0, rows], t)
        self.input.back()
        self.input.learn()
        self.state.learn()
        found = self.input.dx.reshape(dy.shape[0], dy.shape[1], -1)
        return np.stack([self.input.dropped(one, t) for t, one in enumerate(found)])

    def _lstm(self, t: int, sums: Array, c: Array) -> tuple[Array, Array]:
        i, f, g, o = np.split(sums, 4, axis=1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        self.cells[t], new = c, f * c + i * g
        self.gates[t] = i, f, g, o, np.tanh(new)
        return o * np.tanh(new), new

    def _lstm_back(self, t: int, dh: Array, dc: Array) -> tuple[Array, Array]:
        i, f, g, o, shown = self.gates[t]
        dc = dc + dh * o * (1 - shown * shown)
        parts = (
            dc * g * i * (1 - i), dc * self.cells[t] * f * (1 - f), dc * i * (1 - g * g),
            dh * shown * o * (1 - o),
        )  # fmt: skip
        return np.concatenate(parts, axis=1), dc * f

    def _gru(self, t: int, a: Array, b: Array, h: Array) -> Array:
        (ar, az, an), (br, bz, bn) = np.split(a, 3, axis=1), np.split(b, 3, axis=1)
        r, z = sigmoid(ar + br), sigmoid(az + bz)
        n = np.tanh(an + r * bn)
        self.gates[t] = r, z, n, bn
        return (1 - z) * n + z * h

    def _gru_back(self, t: int, dh: Array, rows: slice) -> Array:
        r, z, n, bn = self.gates[t]
        dn = dh * (1 - z) * (1 - n * n)
        dz = dh * (self.states[t] - n) * z * (1 - z)
        dr = dn * bn * r * (1 - r)
        self.input.dy[0, rows] = np.concatenate((dr, dz, dn), axis=1)
        self.state.dy[0, rows] = np.concatenate((dr, dz, dn * r), axis=1)
        return dh * z


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(−x))."""
    return 1 / (1 + np.exp(-x))


def directions(
    step: TrainingStep, node: Node, weights: Mapping[str, Array], biases: Mapping[str, Array]
) -> tuple[Direction, ...]:
    """Of an LSTM or a GRU, one or two."""
    found: list[Direction] = []
    layers = [one for one in step.backward.matrix(node) if isinstance(one, MatMul)]
    for number in range(len(layers) // 2):
        products = [
            Product(step, one, node.shape[1], weights[one.name], biases.get(one.name))
            for one in layers[2 * number : 2 * number + 2]
        ]
        found.append(Direction(node, *products, reverse=number == 1))
    return tuple(found)


__all__ = ["Direction", "Product", "directions", "sigmoid"]
