"""Liberty files: units, tables, cells, functions; and one line for every fault of a file."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from energy_models.errors import EnergyError
from rtl.synthesis.cell_models import bitwise, names_in, plain_expression, verilog_models
from rtl.synthesis.liberty import DEFAULT_LIBRARY, CellLibrary, read_library

installed = pytest.mark.skipif(
    not DEFAULT_LIBRARY.is_file(), reason="no cell library: apt-get install qflow-tech-osu018"
)

LOADS, SLEWS = (0.01, 0.02), (0.05, 0.15)
RISE = ((3.0, 5.0), (4.0, 8.0))  # [load][slew]
FALL = ((1.0, 1.0), (2.0, 2.0))


def rows(values: tuple[tuple[float, ...], ...]) -> str:
    return ", ".join('"' + ", ".join(map(str, row)) + '"' for row in values)


def transposed(values: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    return tuple(zip(*values, strict=True))


def library_text(
    *, units: str = "", voltage: str = "nom_voltage : 2.0;", load_first: bool = True, more: str = ""
) -> str:
    """A library of one inverter and one flip-flop, with tables in either order of axes."""
    load, slew = "total_output_net_capacitance", "input_transition_time"
    names = (load, slew) if load_first else (slew, load)
    axes = (LOADS, SLEWS) if load_first else (SLEWS, LOADS)
    rise, fall = (RISE, FALL) if load_first else (transposed(RISE), transposed(FALL))
    template = "\n".join(
        f'variable_{n} : {name}; index_{n} ("{", ".join(map(str, axis))}");'
        for n, (name, axis) in enumerate(zip(names, axes, strict=True), 1)
    )
    return f"""
library(tiny) {{
  {voltage}
  {units}
  power_lut_template(energy) {{ {template} }}
  cell(INV) {{
    area : 3.5;
    cell_leakage_power : 7;
    pin(A) {{ direction : input; capacitance : 0.004; }}
    pin(Y) {{
      direction : output; function : "A'";
      internal_power() {{
        related_pin : "A";
        rise_power(energy) {{ values ({rows(rise)}); }}
        fall_power(energy) {{ values ({rows(fall)}); }}
      }}
    }}
  }}
  cell(DFF) {{
    area : 9;
    ff(IQ, IQN) {{ next_state : "D"; clocked_on : "CK"; }}
    pin(CK) {{ direction : input; capacitance : 0.002; clock : true; }}
    pin(D) {{ direction : input; capacitance : 0.001; }}
    pin(Q) {{ direction : output; function : "IQ"; }}
  }}
  {more}
}}
"""


def read(tmp_path: Path, text: str) -> CellLibrary:
    path = tmp_path / "tiny.lib"
    path.write_text(text)
    return read_library(path)


@pytest.mark.parametrize("load_first", [True, False])
def test_energy_is_read_at_the_slew_and_at_the_load(tmp_path: Path, load_first: bool) -> None:
    energy = read(tmp_path, library_text(load_first=load_first)).cells["INV"].pins["Y"].energy
    assert energy is not None
    assert energy.loads_pf == LOADS
    assert energy.rise_pj == pytest.approx((4.0, 6.0))  # slew 0.1 lies halfway
    assert energy.fall_pj == pytest.approx((1.0, 2.0))
    assert energy.mean_pj(0.015) == pytest.approx((2.5 + 4.0) / 2)
    assert energy.mean_pj(0.0) == pytest.approx(2.5)
    assert energy.mean_pj(1.0) == pytest.approx(4.0)


def test_units_of_the_file_are_honoured(tmp_path: Path) -> None:
    units = """capacitive_load_unit(10, ff); leakage_power_unit : "1uW"; voltage_unit : "100mV";"""
    library = read(tmp_path, library_text(units=units, voltage="nom_voltage : 18;"))
    cell = library.cells["INV"]
    assert library.voltage_v == pytest.approx(1.8)
    assert cell.pins["A"].capacitance_pf == pytest.approx(0.004 * 0.01)
    assert cell.leakage_mw == pytest.approx(7e-3)
    energy = cell.pins["Y"].energy
    assert energy is not None
    assert energy.mean_pj() == pytest.approx(2.5 * 0.1**2 * 0.01)  # volt² × 10 fF
    assert energy.loads_pf == pytest.approx([load * 0.01 for load in LOADS])


def test_a_slew_in_other_units_of_time(tmp_path: Path) -> None:
    library = read(tmp_path, library_text(units='time_unit : "100ps";'))
    energy = library.cells["INV"].pins["Y"].energy
    assert energy is not None
    assert energy.rise_pj == pytest.approx((5.0, 8.0))  # 0.1 ns is 1.0 there: the table's end


def test_cells_and_their_storage(tmp_path: Path) -> None:
    cells = read(tmp_path, library_text()).cells
    assert not cells["INV"].is_register
    assert not cells["INV"].is_latch
    assert cells["DFF"].is_register
    assert cells["DFF"].leakage_mw is None
    assert cells["DFF"].pins["CK"].is_clock
    assert [pin.name for pin in cells["DFF"].inputs] == ["CK", "D"]
    assert [pin.name for pin in cells["DFF"].outputs] == ["Q"]


@pytest.mark.parametrize(
    "attribute",
    [
        "dont_use : true;",
        "is_isolation_cell : true;",
        "is_level_shifter : true;",
        'always_on : "true";',
        'clock_gating_integrated_cell : "latch_posedge";',
    ],
)
def test_cells_that_plain_logic_must_not_use(tmp_path: Path, attribute: str) -> None:
    text = library_text(more=f"cell(ODD) {{ area : 1; {attribute} }}")
    cells = read(tmp_path, text).cells
    assert [cell.name for cell in cells.values() if cell.dont_use] == ["ODD"]


def test_a_packed_file_is_the_same_library(tmp_path: Path) -> None:
    plain = read(tmp_path, library_text())
    packed = tmp_path / "tiny.lib.gz"
    packed.write_bytes(gzip.compress(library_text().encode()))
    assert read_library(packed).digest == plain.digest
    assert read_library(packed).cells == plain.cells


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Error on line 0, position 0: UnexpectedToken(\"'(' | ':'\", None)"),
        ("module top(); endmodule", None),
        ("library(x) { cell(a) { area : ", None),
        ("library(x) {}", "it has no cells"),
        ("cell(x) { area : 1; }", "it begins with 'cell'"),
        ("library(x) { cell(a) { area : 3; } }", "it states no voltage"),
        ("library(x) { cell(a) { area : -3; } }", "area of cell a must not be negative: -3"),
        ("library(x) { cell(a) { area : wide; } }", "area of cell a is not a number: 'wide'"),
        (
            'library(x) { voltage_unit : "1Q"; cell(a) { area : 3; } }',
            "voltage_unit '1Q' is not understood",
        ),
    ],
)
def test_what_is_no_library(tmp_path: Path, text: str, reason: str | None) -> None:
    with pytest.raises(EnergyError) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{tmp_path}/tiny.lib is not a Liberty library: ")
    assert reason is None or message.endswith(f": {reason}")


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(EnergyError) as caught:
        read_library(tmp_path / "none.lib")
    assert str(caught.value) == f"no Liberty library at {tmp_path}/none.lib"
    absent = Path("/usr/share/qflow/tech/osu999/cells.lib")
    with pytest.raises(EnergyError) as caught:
        read_library(absent)
    assert str(caught.value) == (
        f"no Liberty library at {absent}; it comes with Debian's package: "
        "apt-get install qflow-tech-osu999"
    )


@installed
def test_the_default_library() -> None:
    library = read_library()
    inverter = library.cells["INVX1"]
    assert (library.name, library.voltage_v, library.node_nm) == ("osu018_stdcells", 1.8, 180)
    assert len(library.cells) == 32
    assert inverter.area == 16  # 1.6 × 10 µm in the library's LEF file
    assert inverter.pins["A"].capacitance_pf == pytest.approx(0.00932456)
    assert inverter.leakage_mw == pytest.approx(0.0221741e-6)
    energy = inverter.pins["Y"].energy
    assert energy is not None
    rise, fall = 0.023555 + (0.029044 - 0.023555) / 3, 0.009213 + (0.004772 - 0.009213) / 3
    assert energy.mean_pj(0.005) == pytest.approx((rise + fall) / 2)
    assert {cell.name for cell in library.cells.values() if cell.is_register} == {
        "DFFNEGX1",
        "DFFPOSX1",
        "DFFSR",
    }
    assert [cell.name for cell in library.cells.values() if cell.is_latch] == ["LATCH"]


VARIABLES = ("A", "B1", "C_n")


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> tuple[str, int]:
    """A Liberty expression, and its truth table over VARIABLES."""
    kind = draw(st.sampled_from(("name", "not", "prime", "and", "or", "xor")))
    if depth == 0 or kind == "name":
        place = draw(st.integers(0, len(VARIABLES) - 1))
        return VARIABLES[place], sum((number >> place & 1) << number for number in range(8))
    left, table = draw(expressions(depth - 1))
    if kind == "not":
        return f"!({left})", table ^ 0xFF
    if kind == "prime":
        return f"({left})'", table ^ 0xFF
    right, other = draw(expressions(depth - 1))
    operator = draw(
        st.sampled_from({"and": ("*", "&", " "), "or": ("+", "|"), "xor": ("^",)}[kind])
    )
    joined = {"and": table & other, "or": table | other, "xor": table ^ other}[kind]
    return f"(({left}){operator}({right}))", joined


@given(expressions())
def test_functions_are_read_as_liberty_means_them(case: tuple[str, int]) -> None:
    text, table = case
    numbers = np.arange(8)
    inputs = [numbers >> VARIABLES.index(name) & 1 for name in names_in(text)]
    answer = np.broadcast_to(bitwise(text)(*inputs) & 1, 8)
    assert sum(int(bit) << number for number, bit in enumerate(answer)) == table


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("A B + C", "((A & B) | C)"),
        ("!A B", "((~A) & B)"),
        ("A ^ B C", "((A ^ B) & C)"),
        ("A' + !B'", "((~A) | (~(~B)))"),
        ("(A+1)*0", "((A | 1'b1) & 1'b0)"),
    ],
)
def test_precedence(text: str, plain: str) -> None:
    assert plain_expression(text) == plain


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(A", "Liberty function '(A': a parenthesis is not closed"),
        ("A +", "Liberty function 'A +' ends too early"),
        ("A)", "Liberty function 'A)': unexpected ')'"),
        ("A & ?", "Liberty function 'A & ?': unexpected '?'"),
    ],
)
def test_functions_that_are_none(text: str, message: str) -> None:
    with pytest.raises(EnergyError) as caught:
        plain_expression(text)
    assert str(caught.value) == message


def test_verilog_of_cells(tmp_path: Path) -> None:
    cells = read(tmp_path, library_text()).cells
    assert verilog_models(cells.values()) == (
        "module INV(input A, output Y);\n  assign Y = (~A);\nendmodule\n\n"
        "module DFF(input CK, input D, output Q);\n"
        "  reg IQ;\n  wire IQN = ~IQ;\n  wire clock_ = CK;\n"
        "  always @(posedge clock_) IQ <= D;\n  assign Q = IQ;\nendmodule\n"
    )
