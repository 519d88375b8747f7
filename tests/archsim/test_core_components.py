"""Components of cores: blocks that add up to what was asked for, events that can happen."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archsim import EDGE_16, blocks, simulate
from archsim.energy import account, action_counts, price_design
from archsim.machines.tensorcore import components as tensor
from archsim.machines.tensorcore.design import VOLTA, TensorCore
from archsim.machines.vsq.design import VSQ_16, Vsq
from archsim.tiled.design import CoreDesign, kibibytes
from energy_models.component import Component
from workloads.layers import MatMul, Network

NAMED = {"volta": VOLTA, "vsq-16": VSQ_16, "edge-16": EDGE_16}
FORMATS = (
    ("fp16", "fp32"),
    ("fp16", "fp16"),
    ("bf16", "fp32"),
    ("int8", "int32"),
    ("int4", "int32"),
)
EVENT = {"a": 1.0}


def events(component: Component, action: str) -> Mapping[str, float]:
    return component.actions.get(action, {})


def bits_of(components: blocks.Components, kind: str) -> int:
    return sum(one.count * one.attributes["bits"] for one in components if one.kind == kind)


def count_of(components: blocks.Components, kind: str) -> int:
    return sum(one.count for one in components if one.kind == kind)


@given(bits=st.integers(1, 5000), count=st.integers(0, 9))
def test_wide_blocks_are_cut_into_measured_ones(bits: int, count: int) -> None:
    made = {
        "register": blocks.registers("x", bits, count, {"a": 2.0}),
        "mux": blocks.selectors("x", bits, count, {"a": 2.0}),
        "adder": blocks.adders("x", bits, count, {"a": 2.0}),
    }
    for kind, components in made.items():
        least = blocks.NARROWEST.get(kind, 1)
        assert bits_of(components, kind) == count * max(bits, least)
        widths = [one.attributes["bits"] for one in components]
        assert all(least <= width <= blocks.WIDEST[kind] for width in widths)
        assert max(widths, default=0) - min(widths, default=0) <= 1
    written = [events(one, "write")["a"] for one in made["register"]]
    assert sum(written) == 2 * (count and count_of(made["register"], "register") / count)


@given(bits=st.integers(1, 300), count=st.integers(1, 9))
def test_registers_are_clocked_where_they_are_not_written(bits: int, count: int) -> None:
    for one in blocks.moved_registers("x", bits, count, EVENT):
        assert events(one, "write") == {"a": one.count}
        assert events(one, "clock") == {"cycle": one.count, "a": -one.count}


@given(wide=st.integers(2, 48), narrow=st.integers(1, 48), count=st.integers(1, 5))
def test_a_multiplier_is_cut_along_its_narrower_operand(wide: int, narrow: int, count: int) -> None:
    made = blocks.multipliers("x", (wide, narrow), count, {"a": 3.0})
    wide, narrow = max(wide, narrow), min(wide, narrow)
    if narrow == 1:
        assert [one.kind for one in made] == ["mux"]
        return
    pieces = [one for one in made if one.kind == "multiplier"]
    assert all(one.attributes["a_bits"] == wide for one in pieces)
    assert all(2 <= one.attributes["b_bits"] <= blocks.WIDEST["multiplier"] for one in pieces)
    assert sum(one.count * one.attributes["b_bits"] for one in pieces) == count * narrow
    assert bits_of(made, "adder") == (count_of(tuple(pieces), "multiplier") - count) * (
        wide + narrow
    )
    assert all(events(one, "multiply")["a"] * count == 3 * one.count for one in pieces)


@given(lanes=st.integers(1, 70), bits=st.integers(2, 20), count=st.integers(1, 4))
def test_an_adder_tree_adds_every_lane_once(lanes: int, bits: int, count: int) -> None:
    tree = blocks.adder_tree("x", (lanes, bits), count, EVENT)
    assert count_of(tree, "adder") == count * (lanes - 1)
    left, kept, widths = [bits] * lanes, 0, bits
    while len(left) > 1:
        widths += 1
        left = [widths] * (len(left) // 2) + left[len(left) // 2 * 2 :]
        kept += sum(left)
    assert bits_of(tree, "register") == count * kept


@pytest.mark.parametrize(("depth", "bits"), [(2, 1), (31, 1024), (4096, 1)])
def test_memories_of_any_size_are_one_kind(depth: int, bits: int) -> None:
    """Whether they cost less as registers is for the technology: groups do not depend on it."""
    (made,) = blocks.memory("x", (3, 2, bits, depth), EVENT, EVENT)
    assert (made.kind, made.count) == ("sram", 3)
    assert made.attributes["word_bits"] == 2 * bits and made.attributes["depth"] == depth


def vsq_designs() -> st.SearchStrategy[Vsq]:
    scales = st.sampled_from([(0, 0), (4, 6), (8, 8), (1, 3), (6, 0), (0, 5)])
    return st.builds(
        lambda lanes, rows, hold, bits, scale, rest: Vsq(
            lanes=lanes,
            vector=lanes * rows,
            hold_cycles=hold,
            weight_bits=bits[0],
            activation_bits=bits[1],
            weight_scale_bits=scale[0],
            activation_scale_bits=scale[1],
            gated=rest[0] and any(scale),
            scale_product_bits=rest[1],
            activation_signed=rest[2],
            collector_bits=40,
            accumulator_bits=40,
            weight_memory=kibibytes(1024),
            ifmap_memory=kibibytes(256),
        ),
        st.sampled_from([1, 2, 3, 8, 16]),
        st.integers(1, 5),
        st.integers(1, 17),
        st.tuples(st.integers(2, 8), st.integers(2, 8)),
        scales,
        st.tuples(st.booleans(), st.sampled_from([0, 4, 8]), st.booleans()),
    )


def tensor_designs() -> st.SearchStrategy[TensorCore]:
    return st.builds(
        lambda octets, columns, rows, length, formats: TensorCore(
            octets=octets,
            group_columns=columns,
            rows=2 * rows,
            length=length,
            operand=formats[0],
            accumulator=formats[1],
            accumulator_memory=kibibytes(256),
        ),
        st.integers(1, 3),
        st.integers(1, 4),
        st.integers(1, 9),
        st.integers(1, 6),
        st.sampled_from(FORMATS),
    )


@given(design=st.one_of(vsq_designs(), tensor_designs()))
def test_every_component_has_a_price(design: CoreDesign) -> None:
    for technology in ("45nm", "180nm"):
        prices = price_design(design, technology)
        assert (prices.area_um2 >= 0).all()
        assert {price.what for price in prices.prices if price.figure is None} <= {"leakage"}


def product(m: int, n: int, k: int) -> Network:
    return Network(name="x", source="test", layers=(MatMul(name="x", m=m, n=n, k=k),))


sizes = st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 60))


@given(design=st.one_of(vsq_designs(), tensor_designs()), size=sizes)
def test_nothing_happens_more_often_than_there_are_cycles(
    design: CoreDesign, size: tuple[int, int, int]
) -> None:
    """Of every piece, events that its counted actions stand for, at most one a cycle (memories:
    one read and one write)."""
    counts = action_counts(simulate(design, product(*size)).layers[0])
    for one in design.components:
        if one.kind == "dram":
            continue
        for action, counted in one.actions.items():
            happened = sum(counts[name] * number for name, number in counted.items())
            most = one.count * counts["cycle"] * (1 + 1e-9)
            levels = 9 if action == "select" else 1  # a word passes several of a tree
            assert -1e-6 <= happened <= levels * most, one


def check_products(design: TensorCore, size: tuple[int, int, int]) -> None:
    """Multiplications of units are sets · rows · units · length, the sets those of the layer."""
    m, n, k = size
    counts = action_counts(simulate(design, product(m, n, k)).layers[0])
    sets = -(-m // design.rows) * -(-n // design.columns) * -(-k // design.length)
    happened: dict[str, float] = {}
    for one in design.components:
        for action, counted in one.actions.items():
            key = f"{one.name}.{action}"
            total = sum(counts[name] * number for name, number in counted.items())
            happened[key] = happened.get(key, 0.0) + total
    passes = sets * design.rows
    products = passes * design.columns * design.length
    assert happened["array.dot.multiply"] == pytest.approx(products)
    assert happened["array.partial_sums.select"] == pytest.approx(passes * design.columns)
    assert happened["array.row_fragments.write"] == pytest.approx(2 * passes * design.length)
    chosen = design.length * design.columns
    assert happened["array.column_fragments.write"] == pytest.approx(3 * sets * chosen)


@given(design=tensor_designs(), size=sizes)
def test_a_set_is_rows_passes_of_all_units(design: TensorCore, size: tuple[int, int, int]) -> None:
    m, n, k = size
    check_products(design, (m, n, 1 + k % design.length))  # a chunk, which no tile cuts


SLOTS_OF_A_SET = {
    "a pass a slot": ("_passes", lambda design, each=1.0: {"array_step": each}),
    "a pass a set": ("_passes", lambda design, each=1.0: tensor._sets(design, each)),
    "a set a pass": ("_sets", lambda design, each: tensor._passes(design, each)),
}


@pytest.mark.parametrize("fault", SLOTS_OF_A_SET)
def test_wrong_shares_of_a_slot_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    design = replace(VOLTA, rows=8)  # a set is longer than its passes
    assert design.array.set_cycles > design.rows
    check_products(design, (20, 20, 4))
    name, wrong = SLOTS_OF_A_SET[fault]
    monkeypatch.setattr(tensor, name, wrong)
    with pytest.raises(AssertionError):
        check_products(replace(design), (20, 20, 4))


@given(design=vsq_designs())
def test_a_slot_is_a_step_of_every_lane(design: Vsq) -> None:
    components = [one for one in design.components if one.name == "array.multiply"]
    products = sum(
        events(one, "multiply")["array_step"] for one in components if one.kind == "multiplier"
    )
    assert products == design.lanes * design.vector
    added = sum(
        events(one, "add")["array_step"]
        for one in design.components
        if one.name == "array.collector" and one.kind == "adder"
    )
    assert added == design.lanes
    scaled = [one for one in design.components if one.name == "array.scale"]
    assert bool(scaled) == design.lane.scaled


def test_a_core_of_floats_multiplies_in_its_array_alone() -> None:
    """Its adders and its output take operands apart, but multiply nothing."""
    multipliers = [one for one in VOLTA.components if one.kind == "multiplier"]
    assert multipliers
    for one in multipliers:
        assert one.name.startswith("array.")
        assert events(one, "multiply")


@pytest.mark.parametrize("name", NAMED)
def test_cores_are_accounted_for(name: str) -> None:
    design = NAMED[name]
    result = simulate(design, product(33, 40, 70))
    for technology in ("45nm", "180nm", "7nm"):
        cost = account(result, technology)
        assert cost.total > 0
        assert (cost.dynamic >= 0).all()
    assert account(result, "180nm").area_um2


def test_wider_formats_cost_more() -> None:
    """Order that the structure must give: 8 bits above 4 bits, FP32 sums above FP16 above INT8."""

    def area(design: CoreDesign, unit: str = "array.") -> float:
        found = price_design(design, "180nm")
        parts = zip(found.components, found.area_um2, strict=True)
        return sum(one for part, one in parts if part.name.startswith(unit))

    narrow = replace(VSQ_16, collector_bits=32)
    assert area(narrow) < area(replace(narrow, weight_bits=8, activation_bits=8))
    assert area(narrow) < area(replace(narrow, gated=True))
    assert area(replace(narrow, weight_scale_bits=0, activation_scale_bits=0)) < area(narrow)
    half = replace(VOLTA, accumulator="fp16")
    whole = replace(VOLTA, operand="int8", accumulator="int32")
    areas = [area(one, "array.dot") for one in (whole, half, VOLTA)]
    assert areas[0] < areas[1] < areas[2]
