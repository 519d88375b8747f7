"""Packages that are broken, each in each group: named, left out, and never in the way of a list."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tomllib import loads

import pytest
from command_line import refused
from plugin_packages import EXAMPLE, Groups, archsim_with, example_entries, installed

from archsim import plugins
from archsim.plugins import GROUPS
from archsim.version import VERSION

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

FAULTY = """
import numpy as np
from dataclasses import dataclass, replace
from archsim.codecs.reference_codecs import Codec
from archsim.machine.model import MachineModel
from archsim.memory import Plain
from energy_models.technology_files import FOLDER
from archsim.result import Actions
from energy_models.estimator import Quantity
from own_parts.dot_unit.design import DotUnit
from own_parts.dot_unit.model import DotAnswer, DotModel

class HalfModel(MachineModel):
    def run(self, network, operands, options): ...

class Half(DotUnit):
    kind = "half"

    def machine_model(self):
        return HalfModel(self)

class Twin(DotUnit):
    kind = "systolic"

class Chooser(DotUnit):
    kind = "chooser"
    options = ("--fast",)

class Torn(DotUnit):
    kind = "torn"

    @property
    def macs_per_cycle(self): raise IndexError("no such lane")

class Shy(DotUnit):
    kind = "shy"

    @property
    def summary(self): raise IndexError("no words")

class Long(DotUnit):
    kind = "two words"
    summary = "a machine"

class Blank(DotUnit):
    kind = "blank"

    def machine_model(self): ...

class Timeless(DotUnit):
    kind = "timeless"

    def __post_init__(self):
        object.__setattr__(self, "clock_hz", float("nan"))

class Answers(DotAnswer):
    @property
    def result(self): return replace(super().result, **self.changed)

class NoRun(DotModel):
    def run(self, network, operands, options): ...

class Odd(DotUnit):
    def machine_model(self):
        answers = type("Answers", (Answers,), {"changed": CHANGED.get(self.kind, {})})
        if self.kind == "no-run":
            return NoRun(self)
        return type("OddModel", (DotModel,), {"answers": answers})(self)

CHANGED = {
    "sure": {"actions": Actions({"pair": float("nan")})},
    "numpy": {"cycles": np.int64(3)},
    "idle": {"macs_per_cycle": 0},
}

def odd(name):
    return type("Odd", (Odd,), {"kind": name})()

NO_RUN, SURE, NUMPY, IDLE = (odd(name) for name in ("no-run", "sure", "numpy", "idle"))

HALF, TWIN, CHOOSER, TORN = Half(), Twin(), Chooser(), Torn()
SHY, LONG, BLANK, TIMELESS = Shy(), Long(), Blank(), Timeless()

@dataclass(frozen=True, kw_only=True)
class NoMemory:
    kind = "half"
    access = "scratchpad"

class Misnamed(Plain):
    kind = "other"

class NoHardware:
    def __init__(self, memory): ...

NO_CODEC = "zero-run"

def five(*given): return 5

def says(*given): return "many"

def fails(*given): raise KeyError("a column")

def quits(*given): raise SystemExit("no such table")

class Prices:
    name, node_nm, voltage_v = "prices", 45, 0.9

    def __init__(self, name, folder):
        self.given = {"nan": Quantity(value=float("nan"), source=""), "bare": 3.0}[name]

    def energy_pj(self, component, action): return self.given

    def area_um2(self, component): return self.given

    leakage_mw = area_um2

@dataclass(frozen=True, kw_only=True)
class Hollow(Plain):
    kind = "hollow"

    def components(self, use): ...

SHIPPED = FOLDER / "45nm.toml"

SAYS = Codec(bits=says, title="", source="")
FAILS = Codec(bits=fails, title="", source="")
"""

LISTED: dict[str, dict[str, tuple[str, str]]] = {
    "archsim.designs": {
        "edge-16": ("faulty:HALF", "the name is taken by "
                    "archsim.machines.systolic.design:EDGE_16 of package archsim"),
        "half": ("faulty:HALF", "TypeError: Can't instantiate abstract class HalfModel with "
                 "abstract methods answer, ports, tracks"),
        "chooser": ("faulty:CHOOSER", "its options must be a tuple of Option, not ('--fast',)"),
        "text": ("faulty:NO_CODEC", "it must be a design, not str"),
        "shy": ("faulty:SHY", "IndexError: no words"),
        "long": ("faulty:LONG", "its kind must be a word, not 'two words'"),
        "blank": ("faulty:BLANK", "its machine_model() must be a MachineModel, not NoneType"),
        "timeless": ("faulty:TIMELESS", "clock_hz must be positive, not nan"),
    },
    "archsim.memories": {
        "scratchpad.plain": ("faulty:NoMemory", "the name is taken by archsim.memory.plain:Plain "
                             "of package archsim"),
        "scratchpad.half": ("faulty:NoMemory", "it lacks by_value, capacity_bytes, check, "
                            "components, depth, exact, for_fpga, joined_halves, macros, masks, "
                            "read_back, read_latency_cycles, srams, stored, sure_depth, "
                            "total_bits, write_latency_cycles"),
        "scratchpad.misnamed": ("faulty:Misnamed", "it says that it is scratchpad.other"),
        "stack.lifo": ("faulty:NoMemory", "it must be called <access>.<kind>, access scratchpad, "
                       "stream, bank"),
        "bank.text": ("faulty:NO_CODEC", "it must be a dataclass"),
    },
    "archsim.codecs": {
        "raw": ("faulty:SAYS", "the name is taken by package archsim"),
        "text": ("faulty:NO_CODEC", "it must be a Codec, not str"),
    },
    "archsim.price_sources": {
        "cacti": ("faulty:five", "the name is taken by package archsim"),
        "text": ("faulty:NO_CODEC", "it must be callable, not str"),
    },
    "archsim.technologies": {
        "45nm": ("faulty:SHIPPED", "the name is taken by package archsim"),
        "five": ("faulty:five", "it must be the path of a TOML file, not function"),
        "lost": ("faulty:NO_CODEC", "zero-run cannot be read: No such file or directory"),
        "other": ("faulty:SHIPPED", "its file says that it is '45nm'"),
    },
    "archsim.importers": {
        "onnx": ("faulty:five", "the name is taken by package archsim"),
        "text": ("faulty:NO_CODEC", "it must be callable, not str"),
    },
}  # fmt: skip
"""Of each group that `list` shows, what is wrong in a way of its own."""

ALWAYS = {
    "gone": ("nowhere.parts:X", "ModuleNotFoundError: No module named 'nowhere'"),
    "empty": ("faulty:NOTHING", "AttributeError: module 'faulty' has no attribute 'NOTHING'"),
    "raises": ("raises:X", "ZeroDivisionError: division by zero"),
    "leaves": ("leaves:X", "SystemExit: 3"),
    "panics": ("panics:X", "Panic: lost"),
    "nonsense": ("not an entry", ""),
}
"""Of every group."""


def named(group: str, name: str) -> str:
    return f"scratchpad.{name}" if group == "archsim.memories" else name


def faulty(
    site: Path, groups: Groups, package: str = "bad", requires: tuple[str, ...] = ()
) -> Path:
    """A folder with a package, and the modules that its entries name."""
    installed(site, package, groups, requires)
    (site / "faulty.py").write_text(FAULTY)
    (site / "raises.py").write_text("X = 1 / 0")
    (site / "leaves.py").write_text("raise SystemExit(3)")
    (site / "panics.py").write_text("class Panic(BaseException): ...\nraise Panic('lost')")
    return site


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """Three packages with everything that can be wrong, and the warnings that are due."""
    site = tmp_path_factory.mktemp("broken") / "site"
    groups: Groups = {}
    due: set[str] = set()
    for group, own in LISTED.items():
        always = {named(group, name): one for name, one in ALWAYS.items() if name != "nonsense"}
        groups[group] = {name: target for name, (target, _) in (own | always).items()}
        for name, (_, why) in (own | always).items():
            due.add(f"{name} ({group}) of package bad cannot be used: {why}")
    faulty(site, groups)
    late = {group: {named(group, "late"): "faulty:five"} for group in LISTED}
    requires = ("numpy", "archsim[rtl]>=99,<100", "not a requirement !")
    faulty(site, late, "late", requires)
    twice = {group: {named(group, "late"): "other:six"} for group in LISTED}
    installed(site, "later", twice)
    for group in LISTED:
        name = f"{named(group, 'late')} ({group}) of package"
        version = f"its package requires archsim <100,>=99, and this is {VERSION}"
        due.add(f"{name} late cannot be used: {version}")
        due.add(f"{name} later cannot be used: the name is taken by faulty:five of package late")
    return site, {f"archsim: warning: {one}" for one in due}


def test_each_is_named_and_left_out(everything: tuple[Path, set[str]], tmp_path: Path) -> None:
    site, due = everything
    said = archsim_with(site, EXAMPLE, cwd=tmp_path)("list", "--json")
    assert said.code == 0
    listed = json.loads(said.out)
    assert {"edge-16", "scnn"} <= {one["name"] for one in listed["designs"]}
    for what in ("technologies", "memories", "codecs", "sources", "importers"):
        assert {one["package"] for one in listed[what]} == {"archsim"}
    found = said.err.splitlines()
    assert set(found) == due
    assert len(found) == len(due)  # each once


def test_entries_of_no_group_are_named(tmp_path: Path) -> None:
    groups = {"archsim.design": {"mine": "mine:MINE"}, "archsim.xyz": {"a": "b:C"}, "other.x": {}}
    site = installed(tmp_path / "site", "astray", groups)
    said = archsim_with(site, cwd=tmp_path)("list", "objectives")
    assert said.code == 0
    known = ", ".join(group.removeprefix("archsim.") for group in GROUPS)
    assert said.err.splitlines() == [
        f"archsim: warning: {entry} of package astray cannot be used: there is no group {why}"
        for entry, why in (
            ("mine (archsim.design)", "archsim.design; did you mean designs?"),
            ("a (archsim.xyz)", f"archsim.xyz; known: {known}"),
        )
    ]


def test_all_groups_are_known() -> None:
    ours = set(loads(PROJECT.read_text(encoding="utf-8"))["project"]["entry-points"])
    assert ours | set(example_entries()) <= set(GROUPS)
    asked = set(re.findall(r"\| `(archsim\.[a-z_]+)` \|", plugins.__doc__ or ""))
    assert asked == set(GROUPS)


def test_who_asks_for_one_is_told(everything: tuple[Path, set[str]], tmp_path: Path) -> None:
    site, _ = everything
    archsim = archsim_with(site, EXAMPLE, cwd=tmp_path)
    (tmp_path / "t.toml").write_text(
        'name = "t"\ntitle = "t"\nnode_nm = 45\nvoltage_v = 0.9\n[energy]\ndefault = "raises:x"\n'
    )
    (tmp_path / "net.gone").write_text("")
    run = ("run", "edge-16", "alexnet", "--timing-only")
    for words, why in (
        (("show", "half"), "half (archsim.designs) of package bad cannot be used: TypeError: "),
        (("show", "gone"), "gone (archsim.technologies) of package bad cannot be used: ModuleNot"),
        (("run", "late", "alexnet"), "late (archsim.designs) of package late cannot be used: its "
         "package requires archsim"),
        ((*run, "--set", "ifmap_memory.kind=half"), "the design: ifmap_memory: the kind 'half' is "
         "left out, as a warning says"),
        ((*run, "--technology", "t.toml"), "raises (archsim.price_sources) of package bad cannot "
         "be used: ZeroDivisionError: division by zero"),
        ((*run, "--technology", "other"), "other (archsim.technologies) of package bad cannot be "
         "used: its file says that it is '45nm'"),
        (("run", "edge-16", "net.gone"), "gone (archsim.importers) of package bad cannot be used"),
    ):  # fmt: skip
        said = archsim(*words)
        assert (said.code, said.out) == (2, "")
        assert said.err.splitlines()[-1].startswith(f"archsim: {why}")


USED: Groups = {
    "archsim.codecs": {"fails": "faulty:FAILS"},
    "archsim.price_sources": {
        "five": "faulty:five",
        "fails": "faulty:fails",
        "prices": "faulty:Prices",
    },
    "archsim.importers": {
        "five": "faulty:five",
        "fails": "faulty:fails",
        "quits": "faulty:quits",
    },
}


def test_what_fails_in_use_is_told_in_a_line(tmp_path: Path) -> None:
    archsim = archsim_with(faulty(tmp_path / "site", USED), EXAMPLE, cwd=tmp_path)
    assert refused(archsim("compress", "alexnet", "--layer", "conv1")) == (
        "codec fails of package bad failed: KeyError: 'a column'"
    )
    head = 'name = "t"\ntitle = "t"\nnode_nm = 45\nvoltage_v = 0.9\n[energy]\ndefault = '
    for source, why in (
        ("five:x", "source 'five:x' of package bad gives no estimator: it lacks area_um2, "),
        ("fails:x", "source 'fails:x' of package bad failed: KeyError: 'a column'"),
        ("sixes:x", "no source 'sixes:x': it must begin with table:, synthesis:, cacti:, dram:, "
         "fails:, five:, prices: or none:; "),
        ("prices:nan", "source 'prices:nan' of package bad: energy_pj of dram read must be a "
         "number from 0 on, not nan"),
        ("prices:bare", "source 'prices:bare' of package bad: energy_pj of dram read must be a "
         "Quantity, not float"),
    ):  # fmt: skip
        (tmp_path / "t.toml").write_text(f'{head}"{source}"\n')
        words = ("run", "edge-16", "alexnet", "--timing-only", "--technology", "t.toml")
        assert refused(archsim(*words)).startswith(why)
    for suffix, why in (
        ("five", "of package bad must give a Network or an ONNX model, not int"),
        ("fails", "of package bad failed: KeyError: 'a column'"),
        ("quits", "of package bad failed: SystemExit: no such table"),
    ):
        said = refused(archsim("run", "edge-16", f"net.{suffix}"))
        assert said == f"net.{suffix}: {suffix} (archsim.importers) {why}"


def test_a_codec_must_count(tmp_path: Path) -> None:
    site = faulty(tmp_path / "site", {"archsim.codecs": {"says": "faulty:SAYS"}})
    said = refused(archsim_with(site, EXAMPLE, cwd=tmp_path)("compress", "alexnet"))
    assert said == "codec says of package bad must count bits, a whole number, not 'many'"


HARDWARE = [
    ("archsim.rtl", "dot-unit", "nowhere:X", "dot-unit (archsim.rtl) of package bad cannot be "
     "used: ModuleNotFoundError: No module named 'nowhere'"),
    ("archsim.rtl", "dot-unit", "faulty:NO_CODEC", "dot-unit (archsim.rtl) of package bad cannot "
     "be used: it must be callable, not str"),
    ("archsim.rtl", "dot-unit", "faulty:five", "dot-unit (archsim.rtl) of package bad must make a "
     "component of a design, not int"),
    ("archsim.rtl", "dot-unit", "faulty:fails", "package bad failed in faulty: KeyError: "
     "'a column'"),
    ("archsim.memory_rtl", "scratchpad.registers", "leaves:X", "scratchpad.registers "
     "(archsim.memory_rtl) of package bad cannot be used: SystemExit: 3"),
    ("archsim.memory_rtl", "scratchpad.registers", "faulty:NoHardware", "scratchpad.registers "
     "(archsim.memory_rtl) of package bad cannot be used: it lacks events, unit"),
]  # fmt: skip
"""Hardware, and what is said of it."""


def without_line(said: str) -> str:
    """A message without the number of the line that it names."""
    return re.sub(r", line \d+", "", said)


@pytest.mark.parametrize(("group", "name", "target", "why"), HARDWARE)
def test_broken_hardware_stops_only_who_wants_it(
    tmp_path: Path, group: str, name: str, target: str, why: str
) -> None:
    site = faulty(tmp_path / "site", example_entries() | {group: {name: target}})
    archsim = archsim_with(site, EXAMPLE, cwd=tmp_path)
    kind = ("--set", "ifmap_memory.kind=registers", "--set", "ifmap_memory.capacity_bytes=4096")
    design = ("dot-8",) if group == "archsim.rtl" else ("edge-16", *kind)
    said = refused(archsim("emit", *design, "-o", "core.v"))
    assert without_line(said) == why
    assert not (tmp_path / "core.v").exists()


TAKEN: Groups = {
    "archsim.rtl": {"systolic": "faulty:five"},
    "archsim.memory_rtl": {"scratchpad.plain": "faulty:five"},
}


def test_hardware_of_a_name_that_is_taken_is_left_out(tmp_path: Path) -> None:
    archsim = archsim_with(faulty(tmp_path / "site", TAKEN), EXAMPLE, cwd=tmp_path)
    said = archsim("emit", "edge-16", "--set", "rows=1", "--set", "columns=1", "-o", "core.v")
    assert said.code == 0
    assert said.err.splitlines()[:2] == [
        f"archsim: warning: {name} of package bad cannot be used: the name is taken by {ours} of "
        "package archsim"
        for name, ours in (
            ("systolic (archsim.rtl)", "rtl.systolic:SystolicCore"),
            ("scratchpad.plain (archsim.memory_rtl)", "rtl.memories.plain:PlainScratchpadRtl"),
        )
    ]


def test_what_a_machine_of_a_package_raises_is_told_in_a_line(tmp_path: Path) -> None:
    site = faulty(tmp_path / "site", {"archsim.designs": {"torn": "faulty:TORN"}})
    archsim = archsim_with(site, EXAMPLE, cwd=tmp_path)
    said = refused(archsim("run", "torn", "alexnet", "--timing-only"))
    assert without_line(said) == "package bad failed in faulty: IndexError: no such lane"


ODD = {
    "no-run": "package bad failed with its NoRun in archsim.simulate: AttributeError: 'NoneType' "
              "object has no attribute 'result'",
    "sure": "sure machines, conv1: actions must be whole numbers, not pair nan",
    "numpy": "numpy machines, conv1: cycles must be whole numbers, not cycles np.int64(3)",
    "idle": "idle machines: macs_per_cycle must be a positive whole number, not 0",
}  # fmt: skip


def test_what_a_machine_answers_must_be_what_is_asked(tmp_path: Path) -> None:
    """Also where archsim stumbles over it, the package is named and not archsim's own lines."""
    designs = {name: f"faulty:{name.replace('-', '_').upper()}" for name in ODD}
    memories = {"scratchpad.hollow": "faulty:Hollow"}
    groups: Groups = {"archsim.designs": designs, "archsim.memories": memories}
    archsim = archsim_with(faulty(tmp_path / "site", groups), EXAMPLE, cwd=tmp_path)
    for name, why in ODD.items():
        assert without_line(refused(archsim("run", name, "alexnet", "--timing-only"))) == why
    hollow = ("--set", "weight_memory.kind=hollow", "--technology", "45nm")
    said = refused(archsim("run", "edge-16", "alexnet", "--timing-only", *hollow))
    assert said.startswith("package bad failed with its Hollow in archsim.tiled.components, line ")


VERBS: Groups = {
    "archsim.commands": {
        "broken": "nowhere.cli:register",
        "odd": "json:JSONDecoder",
        "text": "faulty:NO_CODEC",
        "run": "nowhere.cli:register",
    },
}


def test_broken_verbs_are_named_in_help(tmp_path: Path) -> None:
    archsim = archsim_with(faulty(tmp_path / "site", VERBS), EXAMPLE, cwd=tmp_path)
    said = archsim("--help")
    assert said.code == 0
    assert said.err == (
        "archsim: warning: run (archsim.commands) of package bad cannot be used: the name is taken "
        "by archsim.cli.run:register of package archsim\n"
    )
    assert said.out.count("Not available: ") == 3
    for verb, why in (
        ("broken", "the Python module nowhere is missing; install it with: pip install nowhere"),
        ("odd", "odd (archsim.commands) of package bad cannot be used: TypeError: "),
        ("text", "text (archsim.commands) of package bad cannot be used: TypeError: 'str' object"),
    ):
        said = archsim(verb)
        assert (said.code, said.out) == (2, "")
        assert said.err.splitlines()[-1].startswith(f"archsim: {why}")


def test_a_kind_keeps_its_class(tmp_path: Path) -> None:
    site = faulty(tmp_path / "site", {"archsim.designs": {"twin": "faulty:TWIN"}})
    said = archsim_with(site, EXAMPLE, cwd=tmp_path)("show", "edge-16", "--set", "rows=4")
    assert "rows = 4" in said.out
    assert said.err == (
        "archsim: warning: twin of faulty: designs of kind 'systolic' are those of "
        "archsim.machines.systolic.design\n"
    )


CLASHES = """
from archsim.machine.option import Option
from own_parts.dot_unit.design import DotUnit

class Clashing(DotUnit):
    kind = "clashing"
    options = (
        Option(name="seed", says="of something else", value="N", read=int),
        Option(name="mapping", says="a switch elsewhere"),
        Option(name="own", says="its own"),
    )

CLASHING = Clashing()
"""


def test_options_of_one_name_keep_their_meaning(tmp_path: Path) -> None:
    site = installed(tmp_path / "site", "bad", {"archsim.designs": {"clash": "clashes:CLASHING"}})
    (site / "clashes.py").write_text(CLASHES)
    said = archsim_with(site, EXAMPLE, cwd=tmp_path)("run", "--help")
    start = "archsim: warning: option"
    assert said.err.splitlines() == [
        f"{start} --seed of clashing machines cannot be used: the command has an option of that "
        "name",
        f"{start} --mapping of clashing machines cannot be used: that of systolic machines takes a "
        "value",
    ]
    assert "--own" in said.out
