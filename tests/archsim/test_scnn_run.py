"""The sparse machine in `simulate` and on the command line."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from command_line import Call, good, refused

from archsim import simulate
from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machine.registry import design_from_record, design_record, with_settings
from archsim.machines.scnn.design import SCNN_4PE, SCNN_ISCA17, Scnn
from archsim.machines.scnn.layer import layer_timing
from archsim.machines.systolic.design import Systolic
from workloads.builtin import builtin
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import synthetic

LAYER = Conv2d(
    name="conv", channels=6, filters=10, ifmap_height=9, ifmap_width=11, kernel_height=3,
    kernel_width=3, stride_width=2, pad_top=1, pad_left=1, bias=True, relu=True,
)  # fmt: skip
NETWORK = Network(name="n", source="here", layers=(LAYER,))
DENSE = synthetic(LAYER, bits=8)
SPARSE = synthetic(LAYER, bits=8, density=0.3)


@pytest.mark.parametrize("design", [SCNN_ISCA17, SCNN_4PE, Scnn(bank_queue=1)])
def test_records_are_complete(design: Scnn) -> None:
    assert design_from_record(design_record(design), "here") == design


def test_causes_sum_to_the_cycles() -> None:
    (layer,) = simulate(SCNN_ISCA17, NETWORK, operands={"conv": SPARSE}).layers
    assert sum(layer.where.values()) == layer.cycles > 0
    assert layer.where["filling"] == layer.where["wait_output"] == layer.where["memory"] == 0
    assert layer.where["computing"] > 0


def test_values_are_those_of_every_other_machine() -> None:
    (sparse,) = simulate(SCNN_ISCA17, NETWORK, operands={"conv": SPARSE}).layers
    (dense,) = simulate(Systolic(operand_bits=16), NETWORK, operands={"conv": SPARSE}).layers
    assert np.array_equal(sparse.ofmap, dense.ofmap)  # pyright: ignore[reportArgumentType]


def test_zeros_save_products_cycles_and_bytes() -> None:
    (few,) = simulate(SCNN_ISCA17, NETWORK, operands={"conv": SPARSE}).layers
    (all_of_them,) = simulate(SCNN_ISCA17, NETWORK, operands={"conv": DENSE}).layers
    assert few.products is not None
    assert all_of_them.products is not None
    assert few.products < 0.2 * all_of_them.products <= LAYER.macs
    assert few.cycles < all_of_them.cycles
    assert few.bytes_moved["weight"] < all_of_them.bytes_moved["weight"]
    assert few.utilization == few.products / (few.cycles * 1024)


def test_operands_are_asked_for() -> None:
    with pytest.raises(InputError, match="conv: the cycles of scnn depend on the operands"):
        simulate(SCNN_ISCA17, NETWORK)


def test_what_is_drawn_is_said_where_cycles_depend_on_it(archsim: Call) -> None:
    words = ("alexnet", "--timing-only", "--density", "0.1")
    out = good(archsim("run", "scnn", *words))
    assert "operands of 8 layers are drawn, as none are given; cycles depend on them" in out
    record = json.loads(good(archsim("run", "scnn", *words, "--json")))
    drawn = [one for one in record["layers"] if one["ifmap_origin"] == "drawn"]
    assert (record["timed_by_values"], len(drawn)) == (True, 8)
    assert "depend on them" not in good(archsim("run", "edge-16", *words))
    assert not json.loads(good(archsim("run", "edge-16", *words, "--json")))["timed_by_values"]


def test_drawn_operands_fit_the_accumulators() -> None:
    """16-bit multipliers, but products of 16 bits would not fit 24: values have 8."""
    assert SCNN_ISCA17.intake.source_bits == 8
    assert replace(SCNN_ISCA17, accumulator_bits=40).intake.source_bits == 16
    drawn = SCNN_ISCA17.intake.synthetic(LAYER, Drawing(density=0.5))
    assert np.count_nonzero(drawn.ifmap) == round(drawn.ifmap.size / 2)


GROUPS = "group_rule=dnnsim"
VARIANTS = (
    (),
    (GROUPS,),
    (GROUPS, "bank_hash=dnnsim", "barrier=channel"),
    ("activation_memory.kind=boveda",),
    ("sparsity=weights",),
    ("sparsity=activations",),
    (GROUPS, "activation_memory.kind=boveda"),
    (GROUPS, "sparsity=weights"),
    (GROUPS, "sparsity=activations"),
)


@pytest.mark.parametrize("changes", VARIANTS[:3])
def test_on_the_command_line(archsim: Call, changes: tuple[str, ...]) -> None:
    words = ("run", "scnn", "resnet18", "--density", "0.4", "--timing-only", "--json")
    record = json.loads(good(archsim(*words, *(f"--set={one}" for one in changes))))
    assert record["cycles"] > 0
    assert record["layers"][0]["products"] < record["layers"][0]["macs"]
    assert record["energy"]["unit"] == "pJ" and record["energy"]["total"] > 0
    assert {"crossbar", "iaram.words", "control"} <= set(record["area"]["by_component"])


@pytest.mark.slow
@pytest.mark.parametrize("changes", VARIANTS)
@pytest.mark.parametrize(
    "network",
    [
        "alexnet", "densenet121", "googlenet", "mobilenetv2", "resnet18", "resnet50",
        "squeezenet1.1", "vgg16",
    ],
)  # fmt: skip
def test_convolutional_networks_run_or_are_refused(
    archsim: Call, network: str, changes: tuple[str, ...]
) -> None:
    """Refused where the vectors of a row do not fit IARAM or OARAM; else a traceback is none."""
    settings = [f"--set={one}" for one in changes]
    answer = archsim("run", "scnn", network, "--density=0.4", "--timing-only", "--json", *settings)
    if answer.code:
        assert "aram_bytes must be at least" in refused(answer)
    else:
        assert json.loads(good(answer))["cycles"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("changes", VARIANTS)
@pytest.mark.parametrize("network", ["bert-base", "vit-b16", "lstm-zaremba-medium"])
def test_products_of_networks_run(network: str, changes: tuple[str, ...]) -> None:
    """One of each shape, with few rows: the time is in the rows."""
    layers = [one for one in builtin(network).matrix_layers if isinstance(one, MatMul)]
    shapes = {(one.k, one.n, one.batch): one for one in layers if one.k * one.n < 1e6}
    design = with_settings(SCNN_ISCA17, list(changes))
    assert isinstance(design, Scnn)
    for one in shapes.values():
        layer = replace(one, m=2, batch=min(one.batch, 2))
        assert layer_timing(design, layer, synthetic(layer, density=0.4)).cycles > 0


def test_a_report_with_costs_and_memories(archsim: Call, tmp_path: Path) -> None:
    words = ("run", "scnn", "resnet18", "--density", "0.1", "--report", "r.html", "--json")
    good(archsim(*words))
    page = (tmp_path / "r.html").read_text()
    assert "barrier" in page
    for figure in ("memory-bytes", "energy", "energy-by-component", "area"):
        assert f'id="{figure}"' in page
    assert "crossbar" in page and "Energy, power and area are not in this report" not in page


def test_emit(archsim: Call, tmp_path: Path) -> None:
    small = ("--set=grid_rows=1", "--set=grid_columns=2", "--set=weight_lanes=2", "--set=banks=4")
    assert archsim("emit", "scnn", *small, "-o", "core.v").code == 0
    manifest = json.loads((tmp_path / "core.json").read_text())
    names = [port["name"] for port in manifest["ports"]]
    assert names == ["command", "ifmap", "weight", "bias", "ofmap"]
    assert manifest["contract"] == "docs/contracts/scnn.md"
    assert {"signal": "count_product", "action": "product"} in manifest["counters"]
    bits = {port["name"]: port["bits"] for port in manifest["ports"]}
    assert f"[{bits['weight'] - 1}:0] weight__payload" in (tmp_path / "core.v").read_text()


def test_variants_of_the_model_have_no_rtl(archsim: Call) -> None:
    said = refused(archsim("emit", "scnn", "--set", "barrier=channel"))
    assert said == "barrier must be group in the RTL of scnn, not channel"


def test_what_does_not_fit(archsim: Call) -> None:
    words = ("--set", "iaram_bytes=200", "--density", "0.4", "--timing-only")
    said = refused(archsim("run", "scnn", "alexnet", *words))
    assert said.startswith("conv1: iaram_bytes must be at least 760 ")


def test_layers_are_timed_side_by_side_and_after_a_fork() -> None:
    """The kernel runs on threads of ours, not on numba's: one after another, nested, in a child."""
    design = replace(SCNN_ISCA17, grid_rows=2, grid_columns=2, iaram_bytes=130)
    whole = layer_timing(design, LAYER, SPARSE)
    assert len(whole.passes) > 1
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: layer_timing(design, LAYER, SPARSE).cycles, range(8)))
    assert set(found) == {whole.cycles}
    with get_context("fork").Pool(1) as pool:
        assert pool.apply(_cycles, (design,)) == whole.cycles


def _cycles(design: Scnn) -> int:
    return layer_timing(design, LAYER, SPARSE).cycles
