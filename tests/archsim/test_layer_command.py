"""The fields of a layer's command."""

import pytest

from archsim.errors import InputError
from archsim.machine.registry import load_design
from archsim.tiled.choice import find_tiling
from archsim.tiled.design import CoreDesign
from archsim.tiled.layer_command import GATHER_FIELDS, LAYER_FIELDS, describe, layer_fields
from workloads.layers import MatMul


def core(name: str) -> CoreDesign:
    design = load_design(name)
    assert isinstance(design, CoreDesign)
    return design


def test_only_a_core_that_gathers_is_told_of_rows() -> None:
    assert layer_fields(gathers=False) == LAYER_FIELDS
    assert layer_fields(gathers=True) == (*LAYER_FIELDS, *GATHER_FIELDS)
    names = [field.name for field in LAYER_FIELDS]
    assert len(set(names)) == len(names)
    assert "row_words" not in names


@pytest.mark.parametrize("name", ["edge-16", "volta", "vsq-16"])
def test_the_command_has_the_fields_of_its_port(name: str) -> None:
    design = core(name)
    (port,) = (one for one in design.ports if one.name == "command")
    assert port.bits == sum(field.bits for field in LAYER_FIELDS)


def test_a_number_that_does_not_fit_its_field_is_named() -> None:
    design = core("edge-16")
    layer = MatMul(name="wide", m=4, n=4, k=4)
    problem = design.numerics.problem(layer)
    tiling = find_tiling(problem, design.machine)
    assert tiling is not None
    fields = describe("wide", problem, tiling, design.machine, (1, 63))
    assert list(fields) == [field.name for field in LAYER_FIELDS]
    assert (fields["multiplier"], fields["shift"]) == (1, 63)
    with pytest.raises(InputError, match="shift must be from 0 to 63 in a layer's command, not 64"):
        describe("wide", problem, tiling, design.machine, (1, 64))
