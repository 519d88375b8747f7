"""Names of other people's files in every medium: tables, pages, pictures, waves, archives."""

import io
import json
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from archsim import EDGE_16, NetworkResult, simulate
from archsim.cli.layers import print_result
from archsim.energy import account
from archsim.exports import write_exports
from archsim.report import write_report
from archsim.saved import load_result
from workloads.errors import WorkloadError
from workloads.layers import MatMul, Network
from workloads.names import LONGEST, printable
from workloads.onnx_import import import_onnx
from workloads.operands import synthetic

HOSTILE = (
    "[red]x[/red]", "[/]", "<script>alert(1)</script>", "</svg>", "$x$ $", "$\\frac{$", "\\$x",
    "a_{b^",
    "\x1b[31mred\x07", "\x00", "line\nbreak\ttab", "\ud800", "x" * 70_000, "x" * 70_001,
    "../../etc/passwd", "/abs", "", " ", "CON", "a:b*?", "層", "$end x", "=cmd()", "|a|`b`*c*",
    "\u202ertl", "%d{0}", "&amp;\"'", "a\\b",
)  # fmt: skip


@pytest.fixture(scope="module")
def result() -> NetworkResult:
    layers = tuple(MatMul(name=printable(name), m=3, n=4, k=5) for name in HOSTILE)
    network = Network(name="[b]<i>$n$ $", source="<u>", layers=layers)
    operands = {layer.name: synthetic(layer) for layer in layers}
    return simulate(EDGE_16, network, operands=operands)


@given(st.text(max_size=200), st.text(max_size=200))
def test_printable_names(a: str, b: str) -> None:
    for name in (printable(a), printable(a * 2_000)):
        assert len(name) <= LONGEST
        assert name.isprintable()
        name.encode()
        assert printable(name) == name
    if a.isprintable() and len(a) <= LONGEST:
        assert printable(a) == a
    if a.isprintable() and b.isprintable() and a != b:
        assert printable(a) != printable(b)


def test_layers_refuse_what_cannot_be_shown() -> None:
    for name in ("\x1b[2J", "a\nb", "\ud800", "x" * 300):
        with pytest.raises(WorkloadError, match="printable characters"):
            MatMul(name=name, m=1, n=1, k=1)


@pytest.mark.parametrize("width", [20, 80, 10_000])
def test_tables(result: NetworkResult, width: int) -> None:
    out = io.StringIO()
    print_result(result, Console(file=out, width=width, highlight=False, markup=False))
    text = out.getvalue()
    assert "\x1b" not in text
    if width == 10_000:
        for name in map(printable, HOSTILE):
            assert name in text


def test_pictures(result: NetworkResult) -> None:
    mpl.use("Agg")
    priced = account(result, "45nm")
    for draw in (
        result.plot.cycles, result.plot.utilization, result.plot.traffic, result.plot.roofline,
        result.plot.memory_bytes, result.plot.activity,
        lambda: result.plot.energy(priced), lambda: result.plot.area(priced),
    ):  # fmt: skip
        figure: Any = draw().figure
        out = io.BytesIO()
        figure.savefig(out, format="svg")
        ElementTree.fromstring(out.getvalue())
        figure.clear()


def test_a_page(result: NetworkResult, tmp_path: Path) -> None:
    class Tags(HTMLParser):
        scripts: ClassVar[list[str]] = []
        inside = False

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.inside = tag == "script"
            assert tag != "u", "the source's markup is markup of the page"

        def handle_data(self, data: str) -> None:
            if self.inside:
                self.scripts.append(data)

        def handle_endtag(self, tag: str) -> None:
            self.inside = False

    write_report(result, tmp_path / "page.html", account=account(result, "45nm"))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    Tags().feed(text)
    assert not any("alert(1)" in script for script in Tags.scripts)
    assert "<script>alert" not in text


def test_files(result: NetworkResult, tmp_path: Path) -> None:
    write_exports(result, tmp_path / "out")
    names = zipfile.ZipFile(tmp_path / "out" / "ofmaps.npz").namelist()
    assert len(set(map(str.upper, names))) >= len(HOSTILE) - 1
    for name in names:
        assert re.fullmatch(r"[^/\\:*?\"<>|\x00-\x1f]+\.npy", name), name
        assert not name.startswith((".", " "))
    with np.load(tmp_path / "out" / "ofmaps.npz") as arrays:
        assert sum(1 for _ in arrays) == len(HOSTILE)
    read = load_result(tmp_path / "out")
    assert [layer.name for layer in read.layers] == [printable(name) for name in HOSTILE]


def test_a_result_with_names_that_cannot_be_shown(result: NetworkResult, tmp_path: Path) -> None:
    record = json.loads(result.to_json())
    record["network"] = "\x1b[2J\ud800"
    record["layers"][0]["name"] = "a\nb"
    (tmp_path / "x.json").write_text(json.dumps(record))
    read = load_result(tmp_path / "x.json")
    assert read.network == r"\x1b[2J\ud800"
    assert read.layers[0].name == r"a\nb"


def test_a_model() -> None:
    onnx = pytest.importorskip("onnx")
    names = [name for name in HOSTILE if "\ud800" not in name]
    value = onnx.helper.make_tensor_value_info
    x = value("t0", onnx.TensorProto.FLOAT, [2, 3])
    weight = onnx.numpy_helper.from_array(np.ones((3, 3), np.float32), "w")
    nodes = [
        onnx.helper.make_node("MatMul", [f"t{at}", "w"], [f"t{at + 1}"], name=name)
        for at, name in enumerate(names)
    ]
    last = value(f"t{len(names)}", onnx.TensorProto.FLOAT, [2, 3])
    graph = onnx.helper.make_graph(nodes, "\x1b[2J<b>", [x], [last], [weight])
    network = import_onnx(onnx.helper.make_model(graph))
    assert len(network.layers) == len(names)
    assert network.name.isprintable()
    assert network.source.isprintable()
    simulate(EDGE_16, network)
