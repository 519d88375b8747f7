"""Every file of a result fits its schema, every field of the schema is somewhere, and the reader
refuses what the schema refuses."""

from __future__ import annotations

import importlib.util
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_line import Call, good
from jsonschema import Draft202012Validator
from onnx import helper, numpy_helper
from quantised_models import Drawn, Kinds, Shape, model_of

from archsim.errors import InputError
from archsim.machine.registry import registered
from archsim.saved import load_result, parse_result
from archsim.schema.check import check
from archsim.schema.outputs import COMPARISON, PAPER
from archsim.schema.result import RESULT
from rtl.cli.verdict_schema import VERDICT

Record = dict[str, Any]

ROOT = Path(__file__).parents[2]

SMALL = ("--operands", "synthetic", "--density", "0.5")

EXAMPLES: dict[str, tuple[str, ...]] = {
    **{name: (name, "net", *SMALL) for name in registered()},
    "timing": ("edge-16", "net", "--timing-only"),
    "relative": ("edge-16", "net", "--technology", "eyeriss-relative", "--timing-only",
                 "--set", "operand_bits=16"),
    "no technology": ("edge-16", "net", "--technology", "none", "--timing-only"),
    "chain": ("scnn-4pe", "net", *SMALL, "--chain"),
    "compressed": ("edge-16", "net", *SMALL, "--set", "ifmap_memory.kind=boveda",
                   "--set", "weight_memory.kind=boveda"),
    "bounded": ("edge-16", "net", "--timing-only", "--set", "ifmap_memory.kind=boveda"),
    "compressed lists": ("scnn-4pe", "net", *SMALL, "--set", "activation_memory.kind=boveda"),
    "quantised": ("edge-16", "quantised"),
    "language model": ("cloud-128", "gpt2:decode=2", "--timing-only"),
    "training": ("cloud-128", "alexnet:training,density=50", "--timing-only"),
    "built in": ("tpu-v1", "alexnet", "--timing-only", "--sram-voltage", "0.9"),
}  # fmt: skip


def network() -> onnx.ModelProto:
    """Two convolutions with a pool between, and a matrix product."""
    draw, node = np.random.default_rng(3), helper.make_node
    shapes = {"w1": (6, 3, 3, 3), "w2": (4, 6, 3, 3), "w3": (36, 5)}
    nodes = [
        node("Conv", ["x", "w1"], ["a"], name="first", pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"], name="relu"),
        node("MaxPool", ["b"], ["c"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["c", "w2"], ["d"], name="second"),
        node("Flatten", ["d"], ["e"], name="flat"),
        node("MatMul", ["e", "w3"], ["y"], name="last"),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", kind, [1, 3, 10, 10])],
        [helper.make_tensor_value_info("y", kind, [1, 5])],
        [numpy_helper.from_array(draw.normal(size=size).astype(np.float32), name)
         for name, size in shapes.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def quantised() -> onnx.ModelProto:
    """A convolution of integers."""
    drawn = Drawn((Shape().ifmap, Shape().weight), Kinds(), seed=1, taps=27)
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    linear = helper.make_node("QLinearConv", names, ["y"], name="layer", **Shape().attributes)
    return model_of([linear], drawn)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    for name, model in (("net", network()), ("quantised", quantised())):
        onnx.save(model, folder / f"{name}.onnx")
    return {name: str(folder / f"{name}.onnx") for name in ("net", "quantised")}


@pytest.fixture(scope="module")
def seen() -> set[str]:
    """Fields that the examples had, by their places in the schema."""
    return set()


def conforms(record: Any, schema: Record) -> None:
    """With `jsonschema` alone, and with the reader's check at its strictest."""
    errors = [f"{one.json_path}: {one.message}" for one in
              Draft202012Validator(schema).iter_errors(record)]  # fmt: skip
    assert not errors, errors[:5]
    check(record, schema, strict=True)


def places(value: Any, schema: Record, path: str = "") -> Iterator[str]:
    """Paths of the named fields that a value has; names and numbers of items are left out."""
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for one in value:
            yield from places(one, schema["items"], f"{path}[]")
    if not isinstance(value, dict):
        return
    for name, one in value.items():
        if name in schema.get("properties", {}):
            yield f"{path}.{name}"
            yield from places(one, schema["properties"][name], f"{path}.{name}")
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from places(one, schema["additionalProperties"], f"{path}.*")
        for pattern in schema.get("patternProperties", {}):
            if re.search(pattern, name):
                yield f"{path}.{pattern}"


def fields(schema: Record, path: str = "") -> Iterator[tuple[str, Record]]:
    """Every field that a schema names or describes."""
    for name, one in (schema.get("properties", {}) | schema.get("patternProperties", {})).items():
        yield f"{path}.{name}", one
        yield from fields(one, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield f"{path}{mark}", schema[key]
            yield from fields(schema[key], f"{path}{mark}")


@pytest.mark.parametrize("name", EXAMPLES)
def test_results_of_every_kind_fit(
    archsim: Call, models: dict[str, str], seen: set[str], name: str, tmp_path: Path
) -> None:
    words = ["run", *(models.get(word, word) for word in EXAMPLES[name])]
    printed = json.loads(good(archsim(*words, "--json", "-o", "out")))
    saved = json.loads((tmp_path / "out" / "result.json").read_text())
    for record in (printed, saved):
        conforms(record, RESULT)
        seen |= set(places(record, RESULT))
    assert load_result(tmp_path / "out").cycles == printed["cycles"]


def test_no_field_of_the_schema_is_dead(seen: set[str]) -> None:
    """The examples above have every field, so that none is left of what is no longer written."""
    named = {path for path, _ in fields(RESULT) if not path.endswith(("[]", "*"))}
    assert named - seen == set()


def test_what_is_unknown_is_named(archsim: Call, models: dict[str, str]) -> None:
    """At its strictest: the first field that is neither named nor of a pattern."""
    text = good(archsim("run", "edge-16", models["net"], "--timing-only", "--json"))
    record = json.loads(text)
    record["layers"][1] |= {"bias_stored_bits": 3, "bias_bits": 3}
    check(record, RESULT)
    with pytest.raises(InputError, match=r"^layers\[1\]\.bias_bits is unknown$"):
        check(record, RESULT, strict=True)


def test_what_compare_prints_fits(archsim: Call, models: dict[str, str], tmp_path: Path) -> None:
    for name, more in (("a", ()), ("b", ("--set", "rows=8")), ("c", ("--technology", "none"))):
        good(archsim("run", "edge-16", models["net"], "--timing-only", *more, "-o", name))
    conforms(json.loads(good(archsim("compare", "a", "b", "c", "--json"))), COMPARISON)


@pytest.mark.parametrize("name", ["tpu", "scnn-area"])
def test_what_paper_prints_fits(archsim: Call, name: str) -> None:
    conforms(json.loads(good(archsim("paper", name, "--json"))), PAPER)


def test_what_verify_prints_fits(archsim: Call) -> None:
    words = "edge-16 --set rows=2 --set columns=2 --cases 2 --simulator amaranth --json"
    conforms(json.loads(good(archsim("verify", *words.split()))), VERDICT)


@pytest.mark.parametrize("schema", [RESULT, COMPARISON, PAPER, VERDICT])
def test_every_field_is_described_with_its_unit(schema: Record) -> None:
    Draft202012Validator.check_schema(schema)
    for path, field in fields(schema):
        assert field.get("description"), path
        kinds = field["type"] if isinstance(field.get("type"), list) else [field.get("type")]
        figure = {"integer", "number"} & set(kinds)
        assert bool(re.search(r" \[[^]]+\]$", field["description"])) == bool(figure), path


def test_the_files_are_made_of_the_schemas() -> None:
    """`python scripts/schemas.py` mends this, and shows what of the schema has changed."""
    spec = importlib.util.spec_from_file_location("schemas", ROOT / "scripts" / "schemas.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.made()
    assert {path.name for path in made} >= {"result.json", "result-json.md"}
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, path


VALUES: list[Any] = [None, True, "x", -1, 1 << 64, [], {}, [1], {"a": "b"}, {"a": 1}, 1e300]


def steps(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value but the top."""
    inner = value.items() if isinstance(value, dict) else ()
    for key, one in enumerate(value) if isinstance(value, list) else inner:
        yield (*path, key)
        yield from steps(one, (*path, key))


def test_the_reader_refuses_what_the_schema_refuses(archsim: Call, models: dict[str, str]) -> None:
    """Fields changed and taken away, wherever they are: `jsonschema` alone is the oracle."""
    text = good(archsim("run", "edge-16", models["net"], "--timing-only", "--json"))
    record = json.loads(text)
    oracle, draw, refused = Draft202012Validator(RESULT), random.Random(1), 0
    for path in draw.sample(list(steps(record)), 45):
        for value in (..., *draw.sample(VALUES, 3)):
            made = json.loads(text)
            inner = made
            for step in path[:-1]:
                inner = inner[step]
            if value is ...:
                del inner[path[-1]]
            else:
                inner[path[-1]] = value
            if not oracle.is_valid(made):
                refused += 1
                with pytest.raises(InputError) as caught:
                    parse_result(made, "made")
                assert str(caught.value).isprintable()
    assert refused > 70
