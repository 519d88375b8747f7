"""Designs that machines of a space have in common are one point, told by arithmetic alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim import EDGE_16, Plain
from archsim.layer.intake import Drawing
from archsim.machines.scnn.design import SCNN_4PE
from archsim.sweeps import MachineSpace, Search, Space, Study
from archsim.sweeps.points import Grid

ROWS, COLUMNS = st.sets(st.sampled_from([8, 16, 32]), min_size=1), st.sets(st.sampled_from([4, 16]))
KINDS = st.sampled_from([(), ("plain",), ("plain", "boveda")])


@st.composite
def machine(draw: st.DrawFn, number: int) -> MachineSpace:
    """Arrays around bases that differ a little, or a sparse machine."""
    if draw(st.integers(0, 4)) == 0:
        drawing = Drawing(density=0.5, seed=draw(st.integers(0, 1)))
        banks = sorted(draw(st.sets(st.sampled_from([16, 32]), min_size=1)))
        return MachineSpace(
            design=SCNN_4PE, fields={"banks": banks}, drawing=drawing, name=f"{number}"
        )
    base = replace(EDGE_16, rows=draw(st.sampled_from([16, 32])))
    if draw(st.booleans()):
        base = replace(base, ifmap_memory=Plain(capacity_bytes=32768))
    fields: dict[str, object] = {}
    if draw(st.booleans()):
        fields["rows"] = draw(st.permutations(sorted(draw(ROWS))))
    if columns := draw(COLUMNS):
        fields["columns"] = sorted(columns)
    if kinds := draw(KINDS):
        fields["ifmap_memory.kind"] = list(kinds)
    limits = ("rows <= 16",) if draw(st.booleans()) else ()
    return MachineSpace(design=base, fields=fields, constraints=limits, name=f"{number}")


def check(machines: Sequence[MachineSpace]) -> None:
    """As comparing every design's content with all before it says."""
    grid = Grid(Space(machines=tuple(machines), networks=("alexnet",)))
    numbers = np.arange(grid.space.design_count, dtype=np.int64)
    numbers = numbers[grid.allowed(numbers)]
    first: dict[bytes, int] = {}
    for number, one in zip(numbers.tolist(), grid.ids(numbers, 0), strict=True):
        first.setdefault(one, number)
    wanted = [first[one] for one in grid.ids(numbers, 0)]
    assert grid.shared.first_of(numbers).tolist() == wanted


@settings(max_examples=40)
@given(st.data())
def test_the_first_machine_that_allows_a_design_has_it(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    check([data.draw(machine(number)) for number in range(count)])


def test_fields_that_vary_in_one_machine_alone() -> None:
    rows = MachineSpace(design=EDGE_16, fields={"rows": [8, 16, 32]}, name="rows")
    columns = MachineSpace(design=EDGE_16, fields={"columns": [32, 16, 8]}, name="columns")
    one = MachineSpace(design=EDGE_16, name="one")
    check([one, rows, columns])
    check([columns, one, rows])


def test_a_study_keeps_them_once_whatever_asks_first(tmp_path: Path) -> None:
    """In any order, on each network, and when it is continued."""
    fields = [{"rows": [4, 8]}, {"rows": [8, 4, 2]}, {"rows": [2, 8]}]
    machines = tuple(
        MachineSpace(design=EDGE_16, fields=one, name=f"{at}") for at, one in enumerate(fields)
    )
    space = Space(machines=machines, networks=("alexnet", "resnet18"))
    for seed in range(2):
        with Study.begin(tmp_path / str(seed), space) as study:
            study.run(Search(method="random", designs=4, seed=seed))
            study.run()
            frame = study.frame().sort_values(["network", "rows"])
            assert frame["rows"].tolist() == [2, 4, 8] * 2
            assert frame["machine"].tolist() == ["1", "0", "0"] * 2
            assert len(set(frame["id"])) == 6
