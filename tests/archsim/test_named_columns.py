"""Arrays that kernels index by position have names elsewhere, and the two agree.

The positions are module-level constants; that they are used in kernels only is read from the syntax
trees of the packages.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import archsim
from archsim.machine.registry import registered
from archsim.machines.scnn import channel, dnnsim_kernel
from archsim.machines.scnn import kernels as scan
from archsim.machines.vsq import vector_kernels
from archsim.tiled import commands, machine_vector, plan, summary

ROOT = Path(archsim.__file__).parents[1]
PACKAGES = ("archsim", "rtl", "fpga", "training", "workloads", "energy_models")

COLUMNS: dict[ModuleType, tuple[Any, ...]] = {
    commands: (commands.TileCommand,),
    machine_vector: (machine_vector.MachineRecord,),
    plan: (plan.PlanRecord, plan.ServiceRecord),
    summary: (summary.LayerSummary,),
    scan: (scan.PeCounts, scan.ScanScalars),
    dnnsim_kernel: (dnnsim_kernel.PeCounts,),
    vector_kernels: (vector_kernels.SummationRules,),
}
"""Modules whose constants are positions, and the records of their names."""

PROBLEM = "archsim.layer.problem"
"""Its positions are those of `Problem` and `Tiling`, which make the vectors."""

MODULES = {module.__name__ for module in COLUMNS} | {channel.__name__, PROBLEM}


@pytest.mark.parametrize(
    ("module", "record"), [(module, record) for module in COLUMNS for record in COLUMNS[module]]
)
def test_names_stand_in_the_order_of_the_positions(module: ModuleType, record: Any) -> None:
    assert [getattr(module, name.upper()) for name in record._fields] == [
        *range(len(record._fields))
    ]


def test_every_position_has_a_name() -> None:
    assert len(commands.TileCommand._fields) == commands.WALK_COLUMNS
    assert len(machine_vector.MachineRecord._fields) == machine_vector.MACHINE_COLUMNS
    assert len(plan.PlanRecord._fields) == plan.PLAN_COLUMNS
    assert len(plan.ServiceRecord._fields) == plan.SERVICE_COLUMNS
    assert len(summary.LayerSummary._fields) == summary.SUMMARY_COLUMNS
    assert commands.TileCommand._fields[: len(commands.COMMAND_FIELDS)] == tuple(
        field.name for field in commands.COMMAND_FIELDS
    )


def test_the_channel_s_state_is_one_array_with_names() -> None:
    places = channel.STATE.fields
    assert places is not None and channel.STATE.itemsize == 8 * channel.MEMORY_COLUMNS
    for name, place in places.items():
        assert getattr(channel, name.upper()) == place[1] // 8
    memory = np.zeros(channel.MEMORY_COLUMNS, np.int64)
    state = memory.view(channel.STATE)[0]
    state["lists"], state["word_ticks"][2] = 7, 9
    assert (memory[channel.LISTS], memory[channel.WORD_TICKS + 2]) == (7, 9)


def test_a_machine_s_record_is_its_vector() -> None:
    for design in registered().values():
        vector = getattr(design, "machine", None)
        if vector is not None:
            record = machine_vector.machine_record(vector)
            np.testing.assert_array_equal(record.vector(), vector)
            assert not record.vector().flags.writeable


def _constants(module: str) -> set[str]:
    """Names of a module's constants that are numbers."""
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8"))
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign):
            names = [one for target in node.targets for one in ast.walk(target)]
            found |= {one.id for one in names if isinstance(one, ast.Name)}
    return {name for name in found if name.isupper() and name != "T"}


CONSTANTS = {module: _constants(module) for module in MODULES}


def _is_kernel(function: ast.FunctionDef) -> bool:
    names = {one.func if isinstance(one, ast.Call) else one for one in function.decorator_list}
    return bool({getattr(one, "id", "") for one in names} & {"kernel", "inlined"})


def positions(source: str, module: str) -> Iterator[str]:
    """Positions by which an array is indexed outside of kernels, as "line: name"."""
    tree = ast.parse(source)
    whole: dict[str, set[str]] = {}
    own = set(CONSTANTS.get(module, set()))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                name = one.asname or one.name
                if f"{node.module}.{one.name}" in CONSTANTS:
                    whole[name] = CONSTANTS[f"{node.module}.{one.name}"]
                elif one.name in CONSTANTS.get(node.module, set()):
                    own.add(name)

    def visit(node: ast.AST, within: bool) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef) and _is_kernel(node):
            return
        if isinstance(node, ast.Subscript):
            yield from visit(node.value, within)
            yield from visit(node.slice, True)
            return
        if within and (
            (isinstance(node, ast.Name) and node.id in own)
            or (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.attr in whole.get(node.value.id, set())
            )
        ):
            yield f"{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"
        for child in ast.iter_child_nodes(node):
            yield from visit(child, within)

    return visit(tree, False)


def test_positions_are_used_in_kernels_only() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): [
            *positions(
                path.read_text("utf-8"),
                ".".join(path.relative_to(ROOT).with_suffix("").parts),
            )
        ]
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    assert {path: some for path, some in found.items() if some} == {}


@pytest.mark.parametrize(
    "line",
    ["row[cmd.TAPS]", "tiles[:, cmd.TAPS + 1] = 0", "plan[-1, TAPS]", "tiles[:, [cmd.TAPS, 0]]"],
)
def test_every_form_of_a_position_is_seen(line: str) -> None:
    head = "from archsim.tiled import commands as cmd\nfrom archsim.tiled.commands import TAPS\n"
    assert [*positions(head + line, "anywhere")]
    kernel = f"{head}@kernel('i8.1')\ndef f(row):\n    {line}\n"
    assert not [*positions(kernel, "anywhere")]
