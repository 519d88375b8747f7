"""What a sparse core's counted actions make its components do, and DCNN's beside it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from archsim import simulate
from archsim.blocks import Components
from archsim.energy import account, action_counts, price_design
from archsim.errors import InputError
from archsim.layer import layout
from archsim.layer.problem import Problem, problem_of
from archsim.machines.scnn import command as scnn_command
from archsim.machines.scnn import components as scnn_components
from archsim.machines.scnn import dense_actions
from archsim.machines.scnn.dense import DCNN, Dcnn
from archsim.machines.scnn.dense_actions import Zeros, dcnn_actions
from archsim.machines.scnn.design import SCNN_4PE, SCNN_ISCA17, Scnn
from archsim.machines.scnn.layer import layer_timing
from archsim.memories.boveda_stream.stream import BovedaStream
from energy_models.component import Component
from energy_models.pricing import price
from energy_models.technology import load_technology
from workloads.layers import Conv2d, Network
from workloads.operands import Operands, synthetic

whole = st.integers


def designs() -> st.SearchStrategy[Scnn]:
    return st.builds(
        Scnn,
        grid_rows=whole(1, 3), grid_columns=whole(1, 3), weight_lanes=whole(1, 5),
        ifmap_lanes=whole(1, 5), banks=st.sampled_from([1, 2, 8, 32]), bank_entries=whole(8, 40),
        weight_fifo_vectors=whole(9, 60), filter_group=whole(1, 5), operand_bits=whole(6, 16),
        accumulator_bits=whole(12, 40), index_bits=whole(1, 5), bank_queue=whole(1, 6),
        iaram_bytes=st.sampled_from([200, 2000]), oaram_bytes=st.sampled_from([200, 2000]),
        sparsity=st.sampled_from(["both", "weights", "activations"]),
    )  # fmt: skip


def layers() -> st.SearchStrategy[Conv2d]:
    return st.builds(
        lambda taps, more, groups, sizes: Conv2d(
            name="c", channels=groups * sizes[0], filters=groups * sizes[1], groups=groups,
            ifmap_height=taps[0] + more[0], ifmap_width=taps[1] + more[1], kernel_height=taps[0],
            kernel_width=taps[1], stride_height=sizes[2], stride_width=sizes[3],
            pad_top=min(sizes[4], taps[0]), pad_left=sizes[5], pad_bottom=sizes[5], batch=groups,
        ),
        st.tuples(whole(1, 4), whole(1, 4)),
        st.tuples(whole(0, 6), whole(0, 6)),
        whole(1, 2),
        st.tuples(whole(1, 5), whole(1, 7), whole(1, 3), whole(1, 3), whole(0, 2), whole(0, 2)),
    )  # fmt: skip


def drawn(layer: Conv2d, density: float, seed: int) -> Operands:
    return synthetic(layer, bits=6, density=density, seed=seed)


def happened(components: Components, counts: Mapping[str, float]) -> dict[str, float]:
    """Events by "name.kind.action"."""
    found: dict[str, float] = {}
    for one in components:
        for action, counted in one.actions.items():
            key = f"{one.name}.{one.kind}.{action}"
            total = sum(counts[name] * number for name, number in counted.items())
            found[key] = found.get(key, 0.0) + total
    return found


def check_not_more_than_cycles(components: Components, counts: Mapping[str, float]) -> None:
    """Of every piece at most one event a cycle (memories: one read and one write)."""
    for one in components:
        if one.kind == "dram":
            continue
        for action, counted in one.actions.items():
            total = sum(counts[name] * number for name, number in counted.items())
            levels = 12 if action == "select" else 1  # a word passes several of a tree
            assert -1e-6 <= total <= levels * one.count * counts["cycle"] * (1 + 1e-9), one


@settings(deadline=None)
@given(design=designs())
def test_every_component_has_a_price(design: Scnn) -> None:
    for technology in ("16nm", "180nm"):
        prices = price_design(design, technology)
        assert (prices.area_um2 >= 0).all()
        assert {price.what for price in prices.prices if price.figure is None} <= {"leakage"}


def run(design: Scnn, layer: Conv2d, operands: Operands) -> dict[str, float]:
    network = Network(name="n", source="test", layers=(layer,))
    try:
        return action_counts(simulate(design, network, operands={"c": operands}).layers[0])
    except InputError:
        assume(False)
        raise


@settings(deadline=None, max_examples=60)
@given(
    design=designs(), layer=layers(), density=st.sampled_from([0.1, 0.5, 1.0]), seed=whole(0, 99)
)
def test_events_of_a_core_are_its_actions(
    design: Scnn, layer: Conv2d, density: float, seed: int
) -> None:
    counts = run(design, layer, drawn(layer, density, seed))
    problem = problem_of(layer)
    planes = problem.images * problem.groups
    outputs = problem.out_height * problem.out_width * problem.filters
    assert counts["output"] == planes * outputs
    check_not_more_than_cycles(design.components, counts)
    check_events(design.components, counts)


def check_events(components: Components, counts: Mapping[str, float]) -> None:
    """What memories and arithmetic do, by what was counted."""
    found = happened(components, counts)
    assert found["multipliers.multiplier.multiply"] == counts["product"]
    moved = counts["accumulator_update"] + 2 * counts["halo_sum"] + counts["output"]
    assert found["accumulator.words.sram.write"] == moved
    added = counts["accumulator_update"] + counts["halo_sum"] + counts["copy_sum"]
    assert found["accumulator.adder.add"] == added
    assert found["off_chip.dram.dram.read"] == 8 * sum(
        counts[f"{port}_bytes"] for port in ("ifmap", "weight", "bias")
    )


@settings(deadline=None, max_examples=30)
@given(
    design=designs(), layer=layers(), density=st.sampled_from([0.1, 1.0]), group=whole(1, 3),
    lanes=whole(1, 2), bits=st.sampled_from([8, 16]),
)  # fmt: skip
def test_compressed_memories_do_what_is_counted(
    design: Scnn, layer: Conv2d, density: float, group: int, lanes: int, bits: int
) -> None:
    """A price for each; of rows as many are read and written as the actions say."""
    memory = BovedaStream(group=group)
    design = replace(design, activation_memory=memory, ifmap_lanes=group * lanes, operand_bits=bits)
    counts = run(design, layer, drawn(layer, density, 1))
    check_not_more_than_cycles(design.components, counts)
    check_events(design.components, counts)
    check_row_events(design.components, counts)
    for technology in ("16nm", "180nm"):
        assert (price_design(design, technology).area_um2 >= 0).all()


def check_row_events(components: Components, counts: Mapping[str, float]) -> None:
    """Of memories that are macros."""
    found = happened(tuple(one for one in components if one.kind == "sram"), counts)
    for name, ram in product(("read", "write"), ("iaram", "oaram")):
        for part, action in (("", f"{ram}_row_{name}"), (".marks", f"{ram}_{name}")):
            assert found[f"{ram}{part}.words.sram.{name}"] == counts[action]


ROW_FAULTS: dict[str, tuple[str, str]] = {
    "rows are read with every vector": ("iaram_row_read", "iaram_read"),
    "rows of the ofmap are written with every vector": ("oaram_row_write", "oaram_write"),
    "entries are read with every row": ("iaram_read", "iaram_row_read"),
}


@pytest.mark.parametrize("fault", ROW_FAULTS)
def test_wrong_events_of_rows_are_caught(fault: str) -> None:
    design = replace(SCNN_ISCA17, activation_memory=BovedaStream())
    counts = run(design, CONV, drawn(CONV, 0.4, 1))
    check_row_events(design.components, counts)
    named, instead = ROW_FAULTS[fault]
    wrong = tuple(_renamed(one, named, instead) for one in design.components)
    with pytest.raises(AssertionError):
        check_row_events(wrong, counts)


def _renamed(component: Component, named: str, instead: str) -> Component:
    """With every event of one action at another."""
    actions = {
        action: {instead if name == named else name: number for name, number in events.items()}
        for action, events in component.actions.items()
    }
    return replace(component, actions=actions)


CONV = Conv2d(
    name="c", channels=6, filters=9, ifmap_height=9, ifmap_width=11, kernel_height=3,
    kernel_width=3, stride_width=2, pad_top=1, pad_left=1, relu=True,
)  # fmt: skip


EVENT_FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a product for each pair": lambda patch: patch.setattr(
        scnn_components,
        "low_product",
        lambda name, operands, kept, number, _made=scnn_components.low_product: _made(
            name, operands, kept, (number[0], {"pair": 1.0})
        ),
    ),
    "sums read by the drain cost nothing": lambda patch: patch.setattr(
        scnn_components,
        "_words",
        lambda design, name, shape, read, write, _made=scnn_components._words: _made(
            design,
            name,
            shape,
            {key: n for key, n in read.items() if key != "zeroed"},
            {key: n for key, n in write.items() if key != "zeroed"},
        ),
    ),
}


@pytest.mark.parametrize("fault", EVENT_FAULTS)
def test_wrong_events_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = run(SCNN_ISCA17, CONV, drawn(CONV, 0.4, 1))
    check_events(replace(SCNN_ISCA17).components, counts)
    EVENT_FAULTS[fault](monkeypatch)
    with pytest.raises(AssertionError):
        check_events(replace(SCNN_ISCA17).components, counts)


@pytest.mark.parametrize("design", [SCNN_ISCA17, SCNN_4PE], ids=["64 PEs", "4 PEs"])
def test_sparse_cores_are_accounted_for(design: Scnn) -> None:
    network = Network(name="n", source="test", layers=(CONV,))
    result = simulate(design, network, operands={"c": drawn(CONV, 0.4, 1)})
    for technology in ("45nm", "180nm", "16nm", "7nm"):
        cost = account(result, technology)
        assert cost.total > 0
        assert (cost.dynamic >= 0).all()
    area = account(result, "16nm").area_by_component
    assert area is not None
    assert {"iaram.words", "oaram.words", "crossbar", "accumulator.words"} <= set(area)


def test_zeros_save_energy() -> None:
    network = Network(name="n", source="test", layers=(CONV,))
    spent = [
        account(simulate(SCNN_ISCA17, network, operands={"c": drawn(CONV, density, 1)})).total
        for density in (0.1, 0.4, 1.0)
    ]
    assert spent[0] < spent[1] < spent[2]


def test_vectors_into_fifos_are_counted_in_every_used_pe() -> None:
    timing = layer_timing(SCNN_ISCA17, CONV, drawn(CONV, 0.4, 1))
    (one,) = timing.passes
    assert one.mapping.used_pes < SCNN_ISCA17.pes
    vectors = one.weight_bits // (SCNN_ISCA17.word_bits("weight"))
    assert timing.actions["weight_write"] == vectors
    assert timing.actions["fifo_write"] == vectors * one.mapping.used_pes


def tensors(layer: Conv2d, operands: Operands) -> tuple[Problem, Any, Any]:
    problem = problem_of(layer)
    ifmap = layout.split_ifmap(layer, problem, operands.ifmap)[0, 0]
    return problem, ifmap, layout.split_weight(layer, problem, operands.weight)[0]


def products_one_by_one(problem: Problem, ifmap: Any, weight: Any) -> int:
    found = 0
    for p, q in np.ndindex(problem.out_height, problem.out_width):
        for r, s in np.ndindex(problem.kernel_height, problem.kernel_width):
            y = p * problem.stride_height - problem.pad_top + r
            x = q * problem.stride_width - problem.pad_left + s
            if 0 <= y < problem.height and 0 <= x < problem.width:
                found += int((ifmap[y, x] != 0) @ (weight[:, r, s] != 0).sum(axis=0))
    return found


def check_products(layer: Conv2d, seed: int) -> None:
    problem, ifmap, weight = tensors(layer, drawn(layer, 0.5, seed))
    found = Zeros.of(problem, (ifmap, weight, np.ones((2, 2), np.int64)))
    assert found.products == products_one_by_one(problem, ifmap, weight)
    assert found.weight == np.count_nonzero(weight)
    assert (found.ifmap, found.ofmap) == (np.count_nonzero(ifmap), 4)


@given(layer=layers(), seed=whole(0, 99))
def test_products_of_values_that_are_not_zero(layer: Conv2d, seed: int) -> None:
    check_products(layer, seed)


def test_they_are_those_that_a_sparse_core_sends() -> None:
    operands = drawn(CONV, 0.4, 3)
    problem, ifmap, weight = tensors(CONV, operands)
    sent = layer_timing(SCNN_ISCA17, CONV, operands).products
    assert Zeros.of(problem, (ifmap, weight, ifmap)).products == sent


SEEN_FAULTS: dict[str, Callable[..., slice]] = {
    "a stride of one": lambda plane, stride, offset, _seen: _seen(plane, 1, offset),
    "no padding": lambda plane, stride, offset, _seen: _seen(plane, stride, max(offset, 0)),
    "a tap further": lambda plane, stride, offset, _seen: _seen(plane, stride, offset + 1),
}


@pytest.mark.parametrize("fault", SEEN_FAULTS)
def test_wrong_products_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_products(CONV, 1)
    seen = dense_actions._seen  # pyright: ignore[reportPrivateUsage]
    wrong = SEEN_FAULTS[fault]
    monkeypatch.setattr(
        dense_actions, "_seen", lambda plane, stride, offset: wrong(plane, stride, offset, seen)
    )
    with pytest.raises(AssertionError):
        check_products(CONV, 1)


@given(
    design=st.builds(
        Dcnn, grid_rows=whole(1, 4), grid_columns=whole(1, 4), vector=whole(1, 20),
        activation_bytes=st.sampled_from([256, 20000]), accumulators=whole(1, 2000),
        operand_bits=st.sampled_from([8, 16]),
    ),
    layer=layers(),
    seed=whole(0, 99),
)  # fmt: skip
def test_a_dense_core_does_every_product(design: Dcnn, layer: Conv2d, seed: int) -> None:
    problem, ifmap, weight = tensors(layer, drawn(layer, 0.5, seed))
    planes = problem.images * problem.groups
    zeros = Zeros.of(problem, (ifmap, weight, ifmap))
    dense, better = (
        dcnn_actions(design, problem, zeros, optimised=optimised) for optimised in (False, True)
    )
    assert planes * dense["multiply"] == problem.macs
    assert planes * dense["cycle"] == design.cycles(layer)
    assert better["multiply"] == zeros.products <= zeros.met <= dense["multiply"]
    assert better["weight_read"] * design.vector == pytest.approx(zeros.met)
    assert zeros.met == products_one_by_one(problem, ifmap, np.ones_like(weight))
    assert dense["weight_read"] == dense["step"]
    assert better["cycle"] == dense["cycle"] and better["step"] == dense["step"]
    assert dense["step"] <= design.pes * dense["cycle"]
    assert dense["multiply"] <= design.vector * dense["step"]
    check_not_more_than_cycles(design.components, {**dense, "activation_write": 0})  # not timed
    for technology in ("16nm", "180nm"):
        price(load_technology(technology), design.components)


def test_activations_cross_only_if_they_do_not_fit() -> None:
    problem, ifmap, weight = tensors(CONV, drawn(CONV, 0.4, 1))
    zeros = Zeros.of(problem, (ifmap, weight, np.ones(7, np.int64)))
    held = dcnn_actions(DCNN, problem, zeros)
    assert held["ifmap_bytes"] == held["ofmap_bytes"] == 0
    assert held["weight_bytes"] == 2 * weight.size
    assert dcnn_actions(DCNN, problem, zeros, arrives=True)["ifmap_bytes"] == 2 * ifmap.size
    small = replace(DCNN, activation_bytes=2)
    crossing = dcnn_actions(small, problem, zeros)
    assert crossing["ifmap_bytes"] == 2 * ifmap.size
    better = dcnn_actions(small, problem, zeros, optimised=True)
    assert better["ifmap_bytes"] == np.count_nonzero(ifmap) * 20 / 8
    assert better["ofmap_bytes"] == 7 * 20 / 8


def test_widths_are_those_of_the_command() -> None:
    names = ("POSITION_BITS", "COORDINATE_BITS", "TAP_BITS")
    for name in names:
        assert getattr(scnn_components, name) == getattr(scnn_command, name)
    layer, axis = (
        sum(field.bits for field in fields)
        for fields in (scnn_command.LAYER_FIELDS, scnn_command.AXIS_FIELDS)
    )
    assert (layer, axis) == (scnn_components.LAYER_BITS, scnn_components.AXIS_BITS)


def test_a_dense_core_refuses_nothing_of_something() -> None:
    with pytest.raises(InputError, match="accumulators must be positive, not 0"):
        Dcnn(accumulators=0)
