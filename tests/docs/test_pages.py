"""What pages say of each other and of the code, without building the site."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from command_line import Call
from heads import unnamed, written_in

from archsim.cli import layers
from archsim.plots.palette import CAUSE_COLOURS, cause_text
from archsim.schema.result import LAYER, WHERE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONTRACTS = sorted((DOCS / "contracts").glob("*.md"))
DECISIONS = sorted((DOCS / "adr").glob("0*.md"))


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """Cells of the table under a row of headings."""
    lines = page[page.index(heading) :].splitlines()[2:]
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.stem)
def test_contracts_link_to_the_words(path: Path) -> None:
    assert "](../glossary.md)" in text(path).split("\n## ", 1)[0]


def test_glossary_names_causes_as_code_tables_and_figures_do() -> None:
    named = rows(text(DOCS / "glossary.md"), "| cause: where cycles went")
    heads = {cause: head for head, cause in layers.CAUSES.items()}
    assert [cells[0].strip("`") for cells in named] == list(WHERE) == list(CAUSE_COLOURS)
    for field, head, label in named:
        cause = field.strip("`")
        assert (head, label) == (heads.get(cause, ""), cause_text(cause))


def test_glossary_names_the_heads_of_the_table() -> None:
    named = rows(text(DOCS / "glossary.md"), "| field | head in a table")
    heads = [head for _, head, _ in named]
    assert sorted([*heads, *layers.CAUSES]) == sorted(layers.HEADINGS)
    fields = {one for cells in named for one in re.findall(r"`([\w.]+)`", cells[0])}
    known = {
        *LAYER["properties"],
        *(f"tiling.{one}" for one in LAYER["properties"]["tiling"]["properties"]),
    }
    assert fields <= known


TABLES = (
    ("list", "--wide"),
    ("show", "mobilenetv2"),
    ("run", "edge-16", "mobilenetv2", "--timing-only"),
    ("trace", "edge-16", "alexnet", "--layer", "conv5"),
    ("compress", "alexnet", "--layer", "conv2", "--layers"),
    ("paper", "mac-area"),
)


@pytest.mark.parametrize("words", TABLES, ids=lambda words: words[0])
def test_every_head_that_is_printed_is_in_the_glossary(
    words: tuple[str, ...], archsim: Call
) -> None:
    """`archsim` fails for others, here and wherever tests call it."""
    assert archsim(*words).code == 0


def test_every_head_that_is_written_out_is_in_the_glossary() -> None:
    files = [
        one
        for name in ("archsim", "rtl", "fpga", "training")
        for one in (ROOT / name).rglob("*.py")
    ]
    heads = {head for path in files for head in written_in(text(path))}
    assert {"pJ/MAC", "each µm²", "words × bits", "LUT RAM", "state"} <= heads
    assert [head for head in sorted(heads) if unnamed(head)] == []


@pytest.mark.parametrize(
    ("head", "parts"),
    [
        ("util %", []),
        ("layer (cycles)", []),
        ("weights\nbits/value", []),
        ("zero-run", []),
        ("C/A", []),
        ("weights", ["weights"]),
        ("layer\nspeed", ["speed"]),
        ("utilisation %", ["utilisation %"]),
    ],
)
def test_a_head_is_named_whole(head: str, parts: list[str]) -> None:
    assert unnamed(head) == parts


def test_decisions_are_listed_with_what_became_of_them() -> None:
    listed = rows(text(DOCS / "adr" / "README.md"), "| | decision | status |")
    assert [int(number) for number, _, _ in listed] == [int(one.name[:4]) for one in DECISIONS]
    for path, (number, link, status) in zip(DECISIONS, listed, strict=True):
        title = text(path).splitlines()[0].removeprefix(f"# {number}. ")
        assert link == f"[{title}]({path.name})"
        said = re.search(r"^\*\*Status\.\*\* Superseded in part by ADR (\d+)", text(path), re.M)
        wanted = re.fullmatch(r"superseded in part by (\d+)", status)
        assert (said and said[1]) == (wanted and wanted[1]), path.name


@pytest.mark.parametrize(
    "page", ["CONTRIBUTING.md", "ARCHITECTURE.md", "docs/how-to/many-processes.md"]
)
def test_files_that_pages_name_are_there(page: str) -> None:
    roots = (
        "archsim|rtl|training|workloads|energy_models|fpga|tests|docs|benchmarks|scripts|notebooks"
    )
    for named in re.findall(rf"(?:^|[\s`/])((?:{roots})/[\w./*-]*\w)", text(ROOT / page), re.M):
        assert list(ROOT.glob(named)), named


def test_hooks_run_the_tools_of_the_project() -> None:
    """Names of commands, without versions of their own: those are pyproject's."""
    extras = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]["dev"]
    hooks = re.findall(r"entry: \.venv/bin/([\w-]+)", text(ROOT / ".pre-commit-config.yaml"))
    assert hooks == ["ruff", "ruff", "lint-imports"]
    for tool in ("ruff", "import-linter"):
        assert any(re.match(rf"{tool}\b", one) for one in extras)
    assert "rev:" not in text(ROOT / ".pre-commit-config.yaml")
