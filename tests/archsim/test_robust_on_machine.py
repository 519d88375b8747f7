"""Shipped models on machines: against ONNX Runtime, and faults of memories against wrong codes."""

from __future__ import annotations

import json
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from plugin_packages import example_module

from archsim.codecs.robust_quantization import Quantized, RobustScheme, normal, rquant
from archsim.errors import InputError
from archsim.machine.registry import load_design, with_settings
from archsim.machines.systolic.design import EDGE_16
from archsim.machines.vsq.design import VSQ_16
from archsim.memories.faulty.scratchpad import Faulty
from archsim.robust.evaluate import Evaluator
from archsim.robust.machine_points import MachinePoints
from archsim.robust.model import RobustModel, model_of
from archsim.robust.on_machine import MachineEvaluator, Ranges, calibrated, matrix_weights
from archsim.robust.placed import At, able, memories_of, of_operands, placed, refusal
from archsim.robust.vector_unit import within
from archsim.robust.where import errors_by_bit, errors_by_layer
from workloads.labelled import Labelled
from workloads.simplenet import SimpleNet
from workloads.simplenet_onnx import simplenet_onnx

CPU = ["CPUExecutionProvider"]
NETWORK = SimpleNet(channels=4)
INTEGERS = ["operand_bits=16", "accumulator_bits=40"]
FLOATS = ["operand=bf16", "operand_bits=16"]
WIDE = replace(EDGE_16, operand_bits=16, accumulator_bits=40)


def _pictures(count: int, seed: int = 0) -> Labelled:
    draws = np.random.default_rng(seed)
    shown = draws.integers(0, 256, (count, 1, 28, 28)).astype(np.uint8)
    return Labelled("drawn", shown, draws.integers(0, 10, count).astype(np.uint8))


def _model(scheme: RobustScheme) -> RobustModel:
    """Drawn, with biases that tell: those that training begins with are 0."""
    weights, draws = NETWORK.draw(3), np.random.default_rng(4)
    for name, one in weights.items():
        if name.endswith(".bias"):
            weights[name] = draws.normal(0, 0.1, one.shape).astype(np.float32)
    return model_of(NETWORK, scheme, weights, {"seed": 3})


def _evaluator(model: RobustModel) -> MachineEvaluator:
    return MachineEvaluator(model, calibrated(model, _pictures(16, seed=1).pictures))


MACHINES = {
    "systolic, 16 bits": (WIDE, 0.001),
    "systolic": (EDGE_16, 0.12),
    "tensor core": (load_design("volta"), 0.005),
    "vsq": (load_design("vsq-baseline"), 0.12),
    "training": (load_design("sparsetrain"), 0.12),
    "training, 16 bits": (with_settings(load_design("sparsetrain"), INTEGERS), 0.001),
    "training, floats": (with_settings(load_design("sparsetrain"), FLOATS), 0.03),
    "of a package": (example_module("dot_unit.design").DOT_8, 0.12),
}
"""With the share of the logits that roundings may take: of an untrained network, which enlarges
them."""


@pytest.mark.parametrize("scheme", [rquant(8), normal(8), rquant(4)])
@pytest.mark.parametrize("machine", MACHINES)
def test_logits_are_those_of_the_network(scheme: RobustScheme, machine: str) -> None:
    design, share = MACHINES[machine]
    model, data = _model(scheme), _pictures(4)
    found = MachineEvaluator(model, calibrated(model, data.pictures)).logits(design, data)
    right = Evaluator(model, at_once=1).logits(data.floats())
    wrong = np.sqrt(np.square(found - right).mean() / np.square(right).mean())
    assert wrong < share


def _largest_in_onnx_runtime(model: RobustModel, pictures: Labelled) -> dict[str, float]:
    """By matrix layer, of its sums."""
    graph = simplenet_onnx(model.network, model.values())
    sums = {one.name: f"{one.name}/sum" for one in model.network.convolutions}
    for name in sums.values():
        made = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        graph.graph.output.append(made)
    sums["classify"] = "logits"
    session: Any = onnxruntime.InferenceSession(graph.SerializeToString(), None, CPU)
    found = session.run(list(sums.values()), {"pictures": pictures.floats()})
    return {name: float(np.abs(one).max()) for name, one in zip(sums, found, strict=True)}


@pytest.mark.parametrize("scheme", [rquant(8), normal(8), normal(4)])
def test_ranges_are_those_of_the_network(scheme: RobustScheme) -> None:
    model, data = _model(scheme), _pictures(5)
    found = calibrated(model, data.pictures)
    assert found.sums == pytest.approx(_largest_in_onnx_runtime(model, data), rel=1e-4)
    assert found.ifmaps["conv1"] == np.float32(data.pictures.max() / 255)
    for name, sums in found.without_offset.items():
        has_offset = model.scheme.line(model.tensors[f"{name}.weight"].of)[1] != 0
        assert (sums != found.sums[name]) == has_offset


def test_ranges_are_the_same_on_every_processor() -> None:
    """Of whatever vectors: else a shipped point of a machine would be another elsewhere."""
    given = _ranges()
    for kind in ("Prescott", "Haswell"):
        environment = {"OPENBLAS_CORETYPE": kind, "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"}
        assert _in_a_process_of_its_own(environment) == given


def _in_a_process_of_its_own(environment: dict[str, str]) -> Ranges:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return pool.submit(_ranges).result(60)


def _ranges() -> Ranges:
    return calibrated(_model(rquant(8)), _pictures(3).pictures)


@pytest.mark.parametrize("scheme", [rquant(8), replace(normal(8), rounding=True)])
def test_a_cell_that_flips_is_a_bit_of_a_code_that_flips(scheme: RobustScheme) -> None:
    model, data = _model(scheme), _pictures(3)
    faulty = Faulty(inner=EDGE_16.weight_memory, rate=1.0, protected_bits=(0, 1, 2, 4, 5, 6, 7))
    found = _evaluator(model).logits(replace(EDGE_16, weight_memory=faulty), data)
    flipped: dict[str, Quantized] = {
        name: replace(one, codes=one.codes ^ np.uint8(8)) if name.endswith("weight") else one
        for name, one in model.tensors.items()
    }
    other = MachineEvaluator(replace(model, tensors=flipped), _evaluator(model).ranges)
    assert (found == other.logits(EDGE_16, data)).all()
    assert (found != _evaluator(model).logits(EDGE_16, data)).any()


@pytest.mark.parametrize("machine", ["edge-16", "vsq-16", "volta"])
def test_batches_do_not_depend_on_threads(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a picture on which others are in its batch; labels are their own."""
    data, evaluator, design = _pictures(8), _evaluator(_model(rquant(8))), load_design(machine)
    right = [at % 3 == 0 for at in range(8)]
    classes = evaluator.logits(design, data).argmax(axis=1)
    data = replace(data, labels=(classes + right).astype(np.uint8))
    monkeypatch.setattr("archsim.robust.on_machine.BATCH", 3)
    for count in (1, 2, 3, 8):
        monkeypatch.setattr("workloads.threads._threads", count)
        assert evaluator.wrong(design, data) == right
    assert evaluator.wrong(design, data.spread(0)) == []


@pytest.mark.parametrize("special", [(), (np.inf, -np.inf), (np.nan,), (np.nan, np.inf, -np.inf)])
def test_sums_are_cut_as_an_output_stage_that_saturates(special: tuple[float, ...]) -> None:
    values = np.random.default_rng(1).normal(0, 2, (3, 5, 4)).astype(np.float32)
    values.flat[: len(special)] = special
    given = values.copy()
    found = within(values, 1.7)
    right = np.clip(np.nan_to_num(given, nan=0.0, posinf=1.7, neginf=-1.7), -1.7, 1.7)
    assert found.dtype == np.float32 and (found == right.astype(np.float32)).all()
    assert np.array_equal(values, given, equal_nan=True)
    assert within(values[:0], 1.7).size == 0


def test_codes_too_wide_are_refused() -> None:
    with pytest.raises(InputError, match="operands have 4 bits, which do not hold codes of 8"):
        matrix_weights(_model(rquant(8)), 4)
    assert matrix_weights(_model(rquant(4)), 4)["conv1"].integers.min() >= -8


def test_pictures_of_another_size_are_refused() -> None:
    small = Labelled("small", np.zeros((1, 1, 8, 8), np.uint8), np.zeros(1, np.uint8))
    with pytest.raises(InputError, match="small: pictures of"):
        _evaluator(_model(rquant(8))).logits(EDGE_16, small)


def test_what_may_stand_in_failing_cells() -> None:
    assert able(EDGE_16) == {
        "ifmap": ("plain", "boveda", "secded"),
        "weight": ("plain", "boveda", "secded"),
        "accumulator": ("plain", "secded"),
        "bias": ("plain", "secded"),
    }
    assert of_operands(EDGE_16) == ("ifmap", "weight")
    assert able(VSQ_16)["ifmap"] == ("plain", "secded")
    assert "grow where they lie" in refusal(EDGE_16, "accumulator", "boveda")
    assert set(memories_of(EDGE_16)) >= {"ifmap", "weight", "accumulator"}
    for design in (EDGE_16, VSQ_16, load_design("volta")):
        for memory, forms in able(design).items():
            for form in forms:
                changed = placed(design, [At(memory, form, 0.9)], chip=3)
                supplies = {one.relative_voltage for one in changed.components}
                assert supplies == {None, 0.9}


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (At("weights", "plain", 0.9), "no memory 'weights'"),
        (At("weight", "plan", 0.9), "no form 'plan'"),
        (At("weight", "plain", 0.5), "voltage"),
    ],
)
def test_what_cannot_stand_is_refused(at: At, said: str) -> None:
    with pytest.raises(InputError, match=said):
        placed(EDGE_16, [at])


@pytest.mark.parametrize(
    ("machine", "name", "said"),
    [
        ("scnn", "sums", "did you mean accumulator? known: activation, weight, accumulator"),
        ("scnn", "ifmap", "did you mean activation? known: activation, weight, accumulator"),
        ("edge-16", "psums", "did you mean accumulator? known: ifmap, weight, accumulator, bias"),
        ("edge-16", "activations", "did you mean ifmap? known: ifmap, weight, accumulator, bias"),
        ("volta", "wieght", "did you mean weight? known: ifmap, weight, accumulator, bias"),
        ("sparsetrain", "weights", "mean column? known: row, column, accumulator, scratchpad"),
        ("vsq-16", "", "vsq; known: ifmap, weight, accumulator, bias"),
    ],
)
def test_another_name_of_a_memory_is_answered_with_its_own(
    machine: str, name: str, said: str
) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        placed(load_design(machine), [At(name, "plain", 0.9)])


def test_check_bits_are_refused_for_what_any_width_of_them_meets() -> None:
    said = refusal(load_design("sparsetrain"), "row", "secded")
    assert "the window moves on by what is read of it" in said
    for memory in ("weight", "accumulator"):
        assert not refusal(load_design("scnn"), memory, "secded")


@pytest.mark.parametrize("kind", ["parity", "secded"])
@pytest.mark.parametrize(
    ("machine", "memory", "data_bits"),
    [
        ("edge-16", "ifmap", 8), ("edge-16", "weight", 16), ("edge-16", "bias", 32),
        ("edge-16", "accumulator", 32), ("volta", "weight", 16), ("vsq-16", "bias", 32),
        ("scnn", "weight", 20),
    ],
)  # fmt: skip
def test_cells_fail_below_check_bits(machine: str, memory: str, data_bits: int, kind: str) -> None:
    """Else the model has errors in the cells, and the hardware behind the decoder."""
    coded = [f"{memory}_memory.kind={kind}", f"{memory}_memory.data_bits={data_bits}"]
    failing = [f"{memory}_memory.kind=faulty", f"{memory}_memory.rate=0.01"]
    assert with_settings(load_design(machine), [*failing, *coded])
    with pytest.raises(InputError, match=f"must keep words without check bits, not {kind}: cells"):
        with_settings(load_design(machine), [*coded, *failing])


def _points(path: Path, **more: Any) -> MachinePoints:
    sets = more.pop("sets", lambda: (_pictures(4), _pictures(8, seed=1)))
    return MachinePoints(_model(rquant(8)), 4, 2, sets, files=(path,), **more)


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    at = [At("weight", "plain", 0.85)]
    points = _points(path)
    errors, energy = points.errors(EDGE_16, at), points.energy(EDGE_16, at)
    assert len(errors) == 2 and points.energy(EDGE_16).total_pj > energy.total_pj
    lost = points.energy(EDGE_16).total_pj - energy.total_pj
    own = points.energy(EDGE_16).by_memory_pj["weight"] - energy.by_memory_pj["weight"]
    assert lost == pytest.approx(own)

    def refused() -> Any:
        raise AssertionError("asked for pictures")

    again = _points(path, sets=refused)
    assert again.errors(EDGE_16, at) == errors and again.energy(EDGE_16, at) == energy
    with path.open("a") as file:
        file.write('[["half a line')
    assert _points(path, sets=refused).errors(EDGE_16, at) == errors
    lines = path.read_text().splitlines()
    assert all(isinstance(json.loads(line)[0], list) for line in lines[:-1])
    with pytest.raises(AssertionError, match="asked for pictures"):
        _points(path, sets=refused).errors(EDGE_16, [At("weight", "plain", 0.9)])


def test_fields_of_a_machine_tell_it_from_a_shipped_one(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    _points(path).energy(EDGE_16)
    _points(path).energy(replace(EDGE_16, rows=8))
    keys = [json.loads(line)[0] for line in path.read_text().splitlines()]
    assert keys[0][1] == "edge-16" and keys[1][1] != "edge-16" and len(keys) == 2


def test_where_errors_hurt_alone() -> None:
    model, data = _model(rquant(8)), _pictures(4)
    evaluator = _evaluator(model)
    labels = evaluator.logits(EDGE_16, data).argmax(axis=1).astype(np.uint8)
    right = replace(data, labels=labels)
    at = At("weight", "plain", 0.76)
    by_layer = errors_by_layer(evaluator, EDGE_16, at, right)
    assert list(by_layer) == [*(one.name for one in NETWORK.convolutions), "classify"]
    whole = placed(EDGE_16, [at])
    everywhere = dict.fromkeys(by_layer, whole)
    assert evaluator.wrong(EDGE_16, right, everywhere) == evaluator.wrong(whole, right)
    assert 0 < sum(by_layer.values()) < 100 * len(by_layer)
    bits = errors_by_bit(evaluator, EDGE_16, at, right)
    assert len(bits) == 8 and any(bits) and not all(bits)
    with pytest.raises(InputError, match="not of secded ones"):
        errors_by_bit(evaluator, EDGE_16, At("weight", "secded", 0.8), right)
