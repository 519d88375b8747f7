"""Random sparse cores and layers, and the fast model beside the stepped one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scnn_oracle import FIGURES, Oracle
from scnn_strips import first_outputs, windows_in

from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.problem import problem_of
from archsim.machines.scnn import layer as sparse_layer
from archsim.machines.scnn import timing as sparse_timing
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.lists import weight_lists
from archsim.machines.scnn.strips import Strip
from archsim.machines.scnn.timing import PassTiming, Services
from archsim.timing import Service
from workloads.layers import Conv2d, MatMul
from workloads.operands import Operands, synthetic
from workloads.pooling import MaxPool

ARRAYS = ("starts", "ends", "drain_starts", "drained", "pe_ends", "ifmap_cycles", "weight_cycles",
          "ofmap_cycles")  # fmt: skip
NUMBERS = ("cycles", "compute_cycles", "weight_bits", "ifmap_bits", "ofmap_bits")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A layer with operands on a design; gaps on its ports are drawn from `seed`."""

    design: Scnn
    layer: Conv2d | MatMul
    operands: Operands
    seed: int
    gap: int
    pool: MaxPool | None = None

    def gaps(self, port: str, words: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Up to `gap` idle cycles before some of the vectors of a port."""
        random = np.random.default_rng([self.seed, len(port)])
        some = random.random(words) < 0.5
        return random.integers(0, self.gap + 1, words) * some


PORTS = ("ifmap", "weight", "ofmap")


def services(case: Case) -> Services:
    return Services(**{port: Service(gaps=case.gaps(port, 20000)) for port in PORTS})


def operands_of(
    layer: Conv2d | MatMul, densities: tuple[float, float], seed: int, bits: int = 6
) -> Operands:
    """Ifmap and weight of a density each, and some channels of the ifmap all zero."""
    drawn = [synthetic(layer, bits=bits, density=density, seed=seed) for density in densities]
    ifmap = drawn[0].ifmap.copy()
    random = np.random.default_rng(seed)
    if random.random() < 0.5:
        axis = 2 if isinstance(layer, MatMul) else 1
        silent = random.random(ifmap.shape[axis]) < 0.4
        np.moveaxis(ifmap, axis, 0)[silent] = 0
    return replace(drawn[0], ifmap=ifmap, weight=drawn[1].weight)


RULES = [
    {"bank_hash": hashed, "barrier": barrier, "group_rule": rule}
    for hashed in ("linear", "dnnsim")
    for barrier in ("group", "channel")
    for rule in ("accumulators", "dnnsim")
]
"""All but the last, which is DNNsim's count and has no passes of ours."""


@st.composite
def designs(draw: st.DrawFn) -> Scnn:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    rules: Any = draw(st.sampled_from(RULES[:-1]))
    return Scnn(
        grid_rows=whole(1, 3), grid_columns=whole(1, 3), weight_lanes=whole(1, 4),
        ifmap_lanes=whole(1, 4), banks=2 ** whole(0, 4), bank_entries=whole(4, 40),
        weight_fifo_vectors=whole(1, 12), filter_group=whole(1, 5),
        iaram_bytes=draw(st.sampled_from([60, 200, 2000])),
        oaram_bytes=draw(st.sampled_from([60, 200, 2000])),
        operand_bits=whole(6, 16), accumulator_bits=whole(12, 24),
        index_bits=whole(1, 4), **rules,
        sparsity=draw(st.sampled_from(["both", "both", "weights", "activations"])),
        strip_rows=draw(st.sampled_from([0, 0, 0, 1, 2, 5])),
        pipelined_pes=rules.get("barrier", "group") == "group" and draw(st.booleans()),
    )  # fmt: skip


@st.composite
def layers(draw: st.DrawFn) -> Conv2d | MatMul:
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    relu, bias = draw(st.booleans()), draw(st.booleans())
    if whole(0, 5) == 0:
        return MatMul(name="m", m=whole(1, 7), n=whole(1, 7), k=whole(1, 9), bias=bias, relu=relu)
    kernel = whole(1, 5), whole(1, 5)
    groups = draw(st.sampled_from([1, 1, 1, 2]))
    return Conv2d(
        name="c", channels=groups * whole(1, 4), filters=groups * whole(1, 7),
        ifmap_height=kernel[0] + whole(0, 6), ifmap_width=kernel[1] + whole(0, 6),
        kernel_height=kernel[0], kernel_width=kernel[1],
        stride_height=whole(1, 3), stride_width=whole(1, 3),
        pad_top=whole(0, 3), pad_left=whole(0, 3), pad_bottom=whole(0, 2), pad_right=whole(0, 2),
        groups=groups, bias=bias, relu=relu, batch=draw(st.sampled_from([1, 1, 1, 2])),
    )  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> Case:
    layer, seed = draw(layers()), draw(st.integers(0, 10**6))
    density = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.8, 1.0])
    return Case(
        design=draw(designs()),
        layer=layer,
        operands=operands_of(layer, (draw(density), draw(density)), seed),
        seed=seed,
        gap=draw(st.sampled_from([0, 0, 1, 3, 9])),
    )


def oracles(case: Case, passes: list[tuple[Strip, ...]]) -> list[dict[str, Any]]:
    """The stepped answer of every pass, each strip with the inputs that its outputs see."""
    problem = problem_of(case.layer)
    ifmap = layout.split_ifmap(case.layer, problem, case.operands.ifmap)
    weight = layout.split_weight(case.layer, problem, case.operands.weight)
    bias = np.zeros((problem.groups, problem.filters), np.int64)
    if case.operands.bias is not None:
        bias = layout.split_bias(case.layer, problem, case.operands.bias.astype(np.int64))
    gaps = {port: case.gaps(port, 20000).tolist() for port in PORTS}
    scaling = case.operands.multiplier, case.operands.shift
    found: list[dict[str, Any]] = []
    for number, strips in enumerate(passes):
        image, group = divmod(number, problem.groups)
        for strip in strips:
            one = strip.problem
            first = first_outputs(case.pool, strip)
            y = max(first[0] * problem.stride_height - problem.pad_top, 0)
            x = max(first[1] * problem.stride_width - problem.pad_left, 0)
            y, x = min(y, problem.height - 1), min(x, problem.width - 1)
            part = ifmap[image, group, y : y + one.height, x : x + one.width]
            operands = part, weight[group], bias[group]
            windows = windows_in(case.pool, strip)
            found.append(Oracle(case.design, one, operands, scaling, gaps, windows).run())
    return found


def differences(timing: PassTiming, oracle: dict[str, Any]) -> list[str]:
    """Names of the figures in which one pass differs."""
    arrays = [name for name in ARRAYS if not np.array_equal(getattr(timing, name), oracle[name])]
    numbers = [name for name in NUMBERS if getattr(timing, name) != oracle[name]]
    pes = [
        name
        for name in FIGURES
        if not np.array_equal(getattr(timing.pes, name), oracle["pes"][name])
    ]
    return arrays + numbers + pes


def answers(case: Case) -> tuple[list[tuple[Strip, ...]], list[dict[str, Any]]] | None:
    """Strips and stepped answers of a case; None where the core refuses the layer."""
    try:
        passes = sparse_layer.layer_passes(case.design, case.layer, case.operands, case.pool)
    except InputError:
        return None
    return passes, oracles(case, passes)


def agrees(
    case: Case,
    known: tuple[list[tuple[Strip, ...]], list[dict[str, Any]]],
    module: ModuleType = sparse_timing,
) -> bool:
    """Whether the fast model's timing of all passes is the stepped one's."""
    strips = [strip for some in known[0] for strip in some]
    return all(
        not differences(
            module.pass_timing(
                case.design, strip.mapping, replace(strip.operands, has_bias=False), services(case)
            ),
            oracle,
        )
        for strip, oracle in zip(strips, known[1], strict=True)
    )


def weight_words(design: Scnn, strip: Strip) -> list[tuple[tuple[int, int], ...]]:
    """All vectors of weights in the order of the broadcast."""
    return [
        word
        for group in range(strip.mapping.groups)
        for word in words_of(weight_lists(design, strip.mapping, strip.operands.weight, group))
    ]


def words_of(lists: Any) -> list[tuple[tuple[int, int], ...]]:
    """Vectors of (value, index)."""
    pairs = np.stack([lists.values, lists.indices], axis=-1).tolist()
    return [tuple(tuple(lane) for lane in vector) for vector in pairs]
