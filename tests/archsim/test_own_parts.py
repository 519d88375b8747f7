"""A package with a machine, a memory, a codec, prices and a file format, beside archsim."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Call, good, refused
from hypothesis import given
from hypothesis import strategies as st
from plugin_packages import EXAMPLE, archsim_with, example_module, example_site

import archsim as package
from archsim.errors import InputError
from archsim.importers import any_network
from archsim.layer.intake import Drawing
from archsim.machines.systolic.design import EDGE_16
from archsim.numbers import wrap
from archsim.simulate import simulate
from workloads.layers import MatMul, Network

LENET = str(EXAMPLE / "data" / "lenet.csv")
PRICES = EXAMPLE / "own_parts" / "prices"
MOST_LINES = 400


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return example_site(tmp_path_factory.mktemp("installed") / "site")


@pytest.fixture
def own(site: Path, tmp_path: Path) -> Call:
    """The command line with the package installed."""
    return archsim_with(site, cwd=tmp_path)


def test_the_machine_is_small_and_touches_nothing_outside() -> None:
    """The lines that adding it changed elsewhere are none: nothing of archsim knows its names."""
    room = EXAMPLE / "own_parts" / "dot_unit"
    files = [EXAMPLE / "pyproject.toml", *room.glob("*.py"), *room.glob("*.md")]
    assert sum(len(one.read_text().splitlines()) for one in files) < MOST_LINES
    root = Path(package.__file__).parents[1]
    for folder in ("archsim", "rtl", "fpga", "training", "workloads", "energy_models"):
        for file in (root / folder).rglob("*.py"):
            text = file.read_text(encoding="utf-8").replace("examples/own_parts", "")
            for word in ("own_parts", "dot_unit", "dot-unit", "dot-8", "bit-planes", "bit_planes"):
                assert word not in text, f"{file} mentions {word}"


def test_the_tutorial_shows_what_is_there() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    files = [EXAMPLE / "pyproject.toml", *EXAMPLE.rglob("*.py")]
    source = "\n".join(one.read_text(encoding="utf-8") for one in files)
    blocks = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL)
    assert len(blocks) > 8
    for block in blocks:
        assert block.rstrip() in source, block


@pytest.mark.slow
def test_pip_installs_it(tmp_path: Path) -> None:
    """With the build tools that its project file asks for, into a folder of its own."""
    target = str(tmp_path / "site")
    copy = shutil.copytree(EXAMPLE, tmp_path / "own_parts")
    call = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target]
    subprocess.run([*call, str(copy)], check=True, capture_output=True)
    listed = json.loads(good(archsim_with(Path(target), cwd=tmp_path)("list", "codecs", "--json")))
    assert listed[-1]["package"] == "own-parts"


def test_all_that_it_adds_is_listed(own: Call) -> None:
    listed = json.loads(good(own("list", "--json")))
    found = {
        (what, row["name"])
        for what, rows in listed.items()
        for row in rows
        if row.get("package") == "own-parts"
    }
    assert found == {
        ("memories", "registers"),
        ("codecs", "bit-planes"),
        ("sources", "csv"),
        ("technologies", "mine"),
        ("importers", "csv"),
        ("objectives", "bytes_per_mac"),
    }
    assert "dot-8" in {row["name"] for row in listed["designs"]}
    assert "Layers of a CSV file" in good(own("list", "importers"))


def test_its_option_is_shown(own: Call) -> None:
    line = "#   --parts N  into how many sums a dot product is cut that are added outside"
    shown = good(own("show", "dot-8"))
    assert line in shown
    assert "# designs of this kind: dot-8" in (kind := good(own("show", "dot-unit")))
    assert line in kind
    assert "--mapping FILE.toml" in good(own("show", "edge-16"))
    assert "--parts" not in good(own("show", "edge-16"))
    for verb in ("run", "trace"):
        text = " ".join(good(own(verb, "--help")).split())
        assert "--parts N Of dot-unit: into how many sums" in text
        assert "--mapping FILE.toml Of systolic, tensorcore, vsq: how layers are mapped" in text


def test_a_shell_completes_it(site: Path) -> None:
    words = "archsim run dot-8 alexnet --pa"
    asked = {"_ARCHSIM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "4"}
    main = "import sys; sys.argv[0] = 'archsim'; from archsim.cli.main import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", main],
        env={**os.environ, **asked, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert run.stdout.split() == ["--parts"]


REFUSED = [
    (
        ("run", "edge-16", "alexnet", "--timing-only", "--parts", "2"),
        "systolic machines have no option --parts, which dot-unit machines have; "
        "they have: --mapping (how layers are mapped, by name), --mapper (how mappings are found), "
        "--objective (what mappings are the best by), --objective-technology (whose energy the "
        "objective means)",
    ),
    (
        ("trace", "dot-8", "alexnet", "--mapping", "none.toml"),
        "dot-unit machines have no option --mapping, which systolic, tensorcore and vsq machines "
        "have; they have: --parts (into how many sums a dot product is cut)",
    ),
    (
        ("run", "dot-8", "alexnet", "--timing-only", "--parts", "0"),
        "--parts must be a whole number from 1 to 1024, not '0'",
    ),
    (
        ("run", "dot-8", "alexnet", "--part", "3"),
        "no such option: --part (Possible options: --parts, --prune, --report); "
        "see archsim run --help",
    ),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_options_are_refused_by_name(own: Call, words: tuple[str, ...], message: str) -> None:
    assert refused(own(*words)) == message


def test_python_refuses_them_too() -> None:
    network = Network(name="one", layers=(MatMul(name="m", m=2, n=2, k=2),), source="here")
    has = (
        "they have: mappings (how layers are mapped, by name), mapper (how mappings are found), "
        "objective (what mappings are the best by), objective_technology (whose energy the "
        "objective means)"
    )
    for name, elsewhere in (("chain", ", which scnn machines have"), ("parts", ""), ("tiling", "")):
        with pytest.raises(InputError) as error:
            options: dict[str, Any] = {name: 3}
            simulate(EDGE_16, network, **options)
        assert str(error.value) == f"systolic machines have no option {name}{elsewhere}; {has}"
    assert simulate(EDGE_16, network, chain=False).cycles  # not chosen
    with pytest.raises(InputError, match=r"no option chian; "):
        simulate(EDGE_16, network, chian=False)  # no machine has it


def test_it_has_no_mappings_and_says_so() -> None:
    design = example_module("dot_unit.design").DotUnit()
    layer = MatMul(name="m", m=2, n=2, k=2)
    network = Network(name="one", layers=(layer,), source="here")
    with pytest.raises(InputError, match="dot-unit machines have no mappings that could be chosen"):
        design.machine_model().mapped(network, [layer], {})
    with pytest.raises(
        InputError, match="dot-unit machines have no option mapper, which scnn, systolic,"
    ):
        simulate(design, network, mapper="exact")


@pytest.mark.parametrize("bits", [4, 8])
def test_a_language_model_s_cache_is_of_its_words(bits: int) -> None:
    """Keys and values of 12 blocks of gpt2, 768 each, of 4 tokens."""
    design = example_module("dot_unit.design").DotUnit(operand_bits=bits)
    kept = simulate(design, any_network("gpt2:prefill=4")).kv_cache
    assert kept is not None
    assert kept.elements == 2 * 12 * 768 * 4
    assert kept.footprint_bytes == kept.elements * bits // 8


SPACE = f"""
name = "dots"
networks = ["{LENET}"]
objectives = ["cycles", "area"]

[[machine]]
design = "dot-8"
[machine.fields]
lanes = [2, 4, 8]
"""


def test_its_sizes_are_searched(own: Call, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    said = own("sweep", "space.toml", "--workers", "1", "-o", "study", "--json")
    points = {one["lanes"]: one["cycles"] for one in json.loads(said.out)["fronts"][LENET]}
    sums = ((6 * 28 * 28, 25), (16 * 10 * 10, 150), (120, 400))
    assert points == {
        lanes: sum(count * -(-depth // lanes) + 2 for count, depth in sums) for lanes in (2, 4, 8)
    }


def test_its_option_is_for_a_run(own: Call) -> None:
    """Of lenet's layers [sums, depth], on 8 lanes: sums in three parts, of whole pairs of words."""
    record = json.loads(good(own("run", "dot-8", LENET, "--parts", "3", "--json")))
    for layer, (sums, depth) in zip(
        record["layers"], ((6 * 28 * 28, 25), (16 * 10 * 10, 150), (120, 400)), strict=True
    ):
        pairs = 3 * sums * -(-depth // 24)
        assert layer["cycles"] == pairs + 2
        assert layer["actions"] == {"pair": pairs, "sum": 3 * sums}
        assert layer["ofmap_bytes"] == 3 * 4 * sums


def test_parts_do_not_wrap() -> None:
    # its model is imported when it is asked for
    design = example_module("dot_unit.model").DotUnit(lanes=4, operand_bits=8, accumulator_bits=16)
    layer = MatMul(name="m", m=5, n=3, k=40)
    network = Network(name="one", layers=(layer,), source="here")
    operands = {"m": design.intake.synthetic(layer, Drawing(seed=1))}
    ifmap, weight = (one.astype(np.int64) for one in (operands["m"].ifmap, operands["m"].weight))
    exact = ifmap @ weight
    assert np.abs(exact).max() >= 2**15
    whole = simulate(design, network, operands=operands).layers[0].ofmap
    parts = simulate(design, network, operands=operands, parts=10).layers[0].ofmap
    assert whole is not None
    np.testing.assert_array_equal(whole, wrap(exact, 16))
    four = (ifmap[0, :, None, :] * weight[0].T).reshape(5, 3, 10, 4).sum(axis=-1)
    np.testing.assert_array_equal(parts, wrap(four, 16).sum(axis=-1)[None])


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"computing": 3}, "cycles by cause must sum to its 4 cycles, not to 3"),
        ({"computing": 5, "draining": -1}, "cycles by cause must be counts of computing, filling,"),
        ({"computing": 3, "resting": 1}, "cycles by cause must be counts of computing, filling,"),
    ],
)
def test_a_machine_says_of_a_layer_what_every_machine_does(
    monkeypatch: pytest.MonkeyPatch, where: dict[str, int], message: str
) -> None:
    model = example_module("dot_unit.model")
    monkeypatch.setattr(model.DotAnswer, "where", where)
    network = Network(name="one", layers=(MatMul(name="m", m=1, n=2, k=2),), source="here")
    with pytest.raises(InputError, match=f"dot-unit machines, m: {message}"):
        simulate(model.DotUnit(), network)


def test_its_memory_stands_in_a_machine_of_ours(own: Call) -> None:
    words = ("run", "edge-16", LENET, "--timing-only", "--json", "--set")
    size = ("ifmap_memory.capacity_bytes=4096", "--set")
    kinds = ("plain", "registers")
    plain, registers = (
        json.loads(good(own(*words, *size, f"ifmap_memory.kind={kind}"))) for kind in kinds
    )
    assert registers["design"]["ifmap_memory"]["kind"] == "registers"
    assert plain["layers"] == registers["layers"]
    prices = {one["component"]: one for one in registers["energy"]["prices"]}
    assert prices["ifmap.memory.words"]["count"] == 4096 // 16 * 16
    assert "ifmap.memory.words" not in {one["component"] for one in plain["energy"]["prices"]}
    assert refused(own("run", "edge-16", LENET, "--set", "ifmap_memory.kind=registers")) == (
        "the design: ifmap_memory: capacity_bytes must be at most 8192 of registers, not 65536"
    )


def test_its_prices_are_taken(own: Call) -> None:
    found = json.loads(good(own("run", "dot-8", LENET, "--technology", "mine", "--json")))["energy"]
    prices = {(one["component"], one["what"]): one for one in found["prices"]}
    multiply, add = prices["dot.multiplier", "multiply"], prices["dot.adder", "add"]
    assert (multiply["value"], add["value"]) == (0.2, 0.1)
    assert multiply["source"] == "M. Horowitz, Computing's Energy Problem, ISSCC 2014, figure 1.1.9"
    pairs = 120 * 400 // 8
    assert found["layers"]["conv3"]["dot.multiplier"] == pytest.approx(0.2 * 8 * pairs)
    assert good(own("show", "mine")) == (PRICES / "mine.toml").read_text()


def test_mappings_are_chosen_by_its_prices(own: Call) -> None:
    words = ("show", "mapping", "edge-16", LENET, "--layer", "conv3", "--objective", "energy")
    said = refused(own(*words, "--objective-technology", "mine"))
    assert said.startswith("output_stage.requantize: table horowitz has no adder(bits=33) add")


WRONG_FILES = [
    ("prices.csv", "# name: x\n", "there must be a line of columns: component, sizes, quantity, "),
    ("prices.csv", "a, b\n", "columns must be component, sizes, quantity, action, value, "),
    ("prices.csv", None, "cannot be read: No such file or directory"),
    ("net.csv", "Layer, M, N, K\nfc, 1, 2\n", "line 2: must have 8 cells (convolutions) or 4"),
    ("net.csv", "Layer, M, N, K\nfc, 1, 2, x\n", "line 2: sizes must be whole numbers, not 'x'"),
    ("net.csv", "Layer, M, N, K\n", "a line of headings and at least one layer must be there"),
    ("net.csv", None, "cannot be read: No such file or directory"),
]


@pytest.mark.parametrize(("name", "text", "message"), WRONG_FILES)
def test_wrong_files_are_refused(
    own: Call, tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    technology = tmp_path / "mine.toml"
    technology.write_text((PRICES / "mine.toml").read_text().replace("horowitz.csv", "prices.csv"))
    words = ("run", "dot-8", "net.csv" if name == "net.csv" else LENET)
    assert message in refused(
        own(*words, "--technology", "mine.toml" if name[0] == "p" else "45nm")
    )


def test_its_codec_is_counted(own: Call) -> None:
    found = json.loads(good(own("compress", LENET, "--layer", "conv2", "--json")))
    assert found["codecs"]["bit-planes"]["source"] == "examples/own_parts"
    total = found["totals"]["total"]["bits"]
    assert total["entropy"] < total["bit-planes"] < 1.3 * total["raw"]


@given(
    seed=st.integers(0, 10_000), bits=st.sampled_from([4, 8, 16]), signed=st.booleans(),
    group=st.integers(1, 20), spread=st.integers(0, 15),
)  # fmt: skip
def test_its_codec_loses_nothing(
    seed: int, bits: int, signed: bool, group: int, spread: int
) -> None:
    codec = example_module("bit_planes")
    rng = np.random.default_rng(seed)
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    values = rng.integers(low, high, (3, 2, rng.integers(1, 30))) >> min(spread, bits)
    code = codec.encode(values, (bits, signed, group))
    assert len(code) == codec.count(values, bits, signed, 2, group)
    np.testing.assert_array_equal(codec.decode(code, values.shape, (bits, signed, group)), values)
