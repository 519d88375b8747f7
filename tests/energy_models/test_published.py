"""Estimators over published tables: as printed, derived as declared, refused otherwise."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from energy_models.component import Component
from energy_models.errors import EnergyError
from energy_models.interpolation import power_law
from energy_models.published import DramEstimator, TableEstimator
from energy_models.table import load_table

HOROWITZ = TableEstimator(load_table("horowitz-2014"))
EYERISS = TableEstimator(load_table("eyeriss-2016"))
ALADDIN = TableEstimator(load_table("aladdin-2014"))
TPU = TableEstimator(load_table("tpu-2021-7nm"))


def adder(bits):
    return Component(name="core.adder", kind="adder", attributes={"bits": bits})


def multiplier(a_bits, b_bits):
    sizes = {"a_bits": a_bits, "b_bits": b_bits}
    return Component(name="core.multiplier", kind="multiplier", attributes=sizes)


def mac(operand_bits, accumulator_bits):
    sizes = {"operand_bits": operand_bits, "accumulator_bits": accumulator_bits}
    return Component(name="array.mac", kind="mac", attributes=sizes)


def sram(word_bits, depth, ports=1):
    sizes = {"word_bits": word_bits, "depth": depth, "read_ports": ports, "write_ports": 1}
    return Component(name="buffer", kind="sram", attributes=sizes)


def register(bits):
    return Component(name="core.register", kind="register", attributes={"bits": bits})


DRAM = Component(name="memory", kind="dram")


def refused(call, *arguments):
    with pytest.raises(EnergyError) as caught:
        call(*arguments)
    return str(caught.value)


def test_every_printed_figure_is_returned_as_printed():
    figures = {
        ("adder", 8): 0.03,
        ("adder", 32): 0.1,
        ("multiplier", 8): 0.2,
        ("multiplier", 32): 3.1,
    }
    for (kind, bits), value in figures.items():
        component = adder(bits) if kind == "adder" else multiplier(bits, bits)
        found = HOROWITZ.energy_pj(component, "add" if kind == "adder" else "multiply")
        assert (found.value, found.how) == (value, "")
        assert found.source == "Horowitz, ISSCC 2014, figure 1.1.9"
    assert [HOROWITZ.area_um2(adder(bits)).value for bits in (8, 16, 32)] == [36, 67, 137]
    for depth, value in ((1024, 10), (4096, 20), (131072, 100)):
        found = HOROWITZ.energy_pj(sram(64, depth), "write")
        assert (found.value, found.how) == (value, "read_ports, write_ports not stated there")
    assert (HOROWITZ.name, HOROWITZ.node_nm, HOROWITZ.voltage_v) == ("horowitz-2014", 45, 0.9)


def test_dram_is_divided_by_the_bits_of_its_access():
    found = HOROWITZ.energy_pj(DRAM, "read")
    assert found.value == pytest.approx(1950 / 64)
    assert found.how == "the middle of the printed 1.3 to 2.6 nJ; 1.95 nJ over 64 bits"
    assert refused(TPU.energy_pj, DRAM, "read") == (
        "memory: table tpu-2021-7nm has several DRAM interfaces; "
        "choose a source such as dram:ddr4, dram:hbm2, dram:gddr6"
    )


def test_a_multiplier_between_two_printed_sizes():
    found = HOROWITZ.energy_pj(multiplier(16, 16), "multiply")
    assert found.value == pytest.approx(math.sqrt(0.2 * 3.1))  # half way on logarithmic axes
    assert found.how == (
        "power law in a_bits × b_bits between multiplier(a_bits=8, b_bits=8) and "
        "multiplier(a_bits=32, b_bits=32)"
    )
    oblong = HOROWITZ.energy_pj(multiplier(4, 16), "multiply")
    assert oblong.value == 0.2
    assert oblong.how == "as multiplier(a_bits=8, b_bits=8), of the same a_bits × b_bits"


def test_an_sram_between_two_printed_capacities():
    found = HOROWITZ.energy_pj(sram(128, 1024), "read")  # 16 KiB, words twice as wide
    assert found.value == pytest.approx(2 * math.sqrt(10 * 20))
    assert found.how == (
        "power law in capacity between sram(word_bits=64, depth=1024) and "
        "sram(word_bits=64, depth=4096); in proportion to the word, 64 bits there and 128 here; "
        "read_ports, write_ports not stated there"
    )
    assert found.source == (
        "Horowitz, ISSCC 2014, figure 1.1.9, cache of 8 KB, 64 bits; "
        "Horowitz, ISSCC 2014, figure 1.1.9, cache of 32 KB, 64 bits"
    )


@given(bits=st.integers(8, 32))
def test_wider_adders_cost_more_and_stay_between_the_printed(bits):
    energy = HOROWITZ.energy_pj(adder(bits), "add").value
    assert 0.03 <= energy <= 0.1
    if bits < 32:
        assert energy < HOROWITZ.energy_pj(adder(bits + 1), "add").value


@given(word_bits=st.sampled_from([8, 16, 64, 256]), capacity=st.integers(16, 20))
def test_larger_memories_cost_more_and_wide_words_in_proportion(word_bits, capacity):
    found = HOROWITZ.energy_pj(sram(word_bits, 2**capacity // word_bits), "read").value
    larger = HOROWITZ.energy_pj(sram(word_bits, 2 ** (capacity + 1) // word_bits), "read").value
    assert found < larger
    one = HOROWITZ.energy_pj(sram(64, 2**capacity // 64), "read").value
    assert found == pytest.approx(one * word_bits / 64)


@given(st.floats(0.1, 10), st.floats(-2, 3), st.floats(1, 100))
def test_the_power_law_is_exact_on_power_laws(scale, exponent, size):
    def law(s):
        return scale * s**exponent

    assert power_law((1, law(1)), (100, law(100)), size) == pytest.approx(law(size), rel=1e-9)


def test_a_mac_is_composed():
    found = HOROWITZ.energy_pj(mac(8, 32), "mac")
    assert found.value == pytest.approx(0.2 + 0.1)
    assert found.how == "composed of multiplier(a_bits=8, b_bits=8) and adder(bits=32)"
    assert HOROWITZ.area_um2(mac(8, 32)).value == 282 + 137
    interpolated = HOROWITZ.energy_pj(mac(16, 32), "mac")
    assert interpolated.value == pytest.approx(math.sqrt(0.62) + 0.1)
    assert interpolated.how.startswith(
        "composed of multiplier(a_bits=16, b_bits=16) (power law in a_bits × b_bits between"
    )


def test_a_printed_mac_is_not_composed():
    found = EYERISS.energy_pj(mac(16, 32), "mac")
    assert (found.value, found.how) == (1, "accumulator_bits not stated there")
    assert (EYERISS.unit, HOROWITZ.unit) == ("MAC", "pJ")
    assert refused(EYERISS.energy_pj, mac(8, 32), "mac") == (
        "array.mac: table eyeriss-2016 has no mac(operand_bits=8, accumulator_bits=32) mac energy; "
        "nearest: mac(operand_bits=16) mac energy"
    )


MINE = """
name = "mine"
title = "My table"
node_nm = 28
voltage_v = 0.9
source = "Me, 2020"
"""


def mine(tmp_path, *entries):
    """An estimator over energies in pJ: (component, attributes, action, value, more lines)."""
    text = MINE
    for component, attributes, action, value, more in entries:
        text += (
            f'[[entry]]\ncomponent = "{component}"\nattributes = {{ {attributes} }}\n'
            f'quantity = "energy"\naction = "{action}"\nvalue = {value}\nunit = "pJ"\n'
            f'source = "page 1"\n{more}\n'
        )
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return TableEstimator(load_table(path))


def test_a_mac_is_not_composed_beside_a_printed_one(tmp_path):
    estimator = mine(
        tmp_path,
        ("mac", "operand_bits = 16", "mac", 1.5, ""),
        ("multiplier", "a_bits = 8, b_bits = 8", "multiply", 0.2, ""),
        ("adder", "bits = 32", "add", 0.1, ""),
    )
    assert refused(estimator.energy_pj, mac(8, 32), "mac") == (
        "array.mac: table mine has no mac(operand_bits=8, accumulator_bits=32) mac energy; "
        "nearest: mac(operand_bits=16) mac energy"
    )


def test_entries_at_another_supply_are_left_alone(tmp_path):
    estimator = mine(
        tmp_path,
        ("adder", "bits = 8", "add", 0.01, "voltage_v = 0.6"),
        ("adder", "bits = 8", "add", 0.03, ""),
        ("adder", "bits = 32", "add", 0.05, "node_nm = 16"),
    )
    assert estimator.energy_pj(adder(8), "add").value == 0.03
    assert refused(estimator.energy_pj, adder(16), "add") == (
        "core.adder: table mine has no adder(bits=16) add energy; nearest: adder(bits=8) add energy"
    )


def test_a_range_stays_told_when_interpolated(tmp_path):
    estimator = mine(
        tmp_path,
        ("adder", "bits = 8", "add", 2, "low = 1\nhigh = 3"),
        ("adder", "bits = 32", "add", 8, ""),
    )
    found = estimator.energy_pj(adder(16), "add")
    assert found.value == pytest.approx(4)
    assert found.how == (
        "power law in bits between adder(bits=8) and adder(bits=32); "
        "the middle of the printed 1 to 3 pJ"
    )


def test_eyeriss_ratios():
    small, large = sram(16, 256), sram(16, 51200)
    assert [EYERISS.energy_pj(memory, "read").value for memory in (small, large)] == [1, 6]
    assert EYERISS.table.find("inter_pe", "energy", "transfer", bits=16).value == 2
    assert 16 * EYERISS.energy_pj(DRAM, "write").value == 200


def test_registers_are_one_bit_registers():
    found = ALADDIN.energy_pj(register(24), "write")
    assert found.value == pytest.approx(24 * 0.008999)
    assert found.how == "composed of 24 one-bit registers"
    assert ALADDIN.leakage_mw(register(24)).value == pytest.approx(24 * 73.95e-6)
    assert ALADDIN.area_um2(register(1)).how == ""


REFUSALS = {
    "wider than printed": (
        HOROWITZ.energy_pj,
        (adder(40), "add"),
        "core.adder: table horowitz-2014 has no adder(bits=40) add energy; "
        "nearest: adder(bits=32) add energy; adder(bits=16) add energy",
    ),
    "one size only": (
        ALADDIN.energy_pj,
        (multiplier(8, 8), "multiply"),
        "core.multiplier: table aladdin-2014 has no multiplier(a_bits=8, b_bits=8) multiply "
        "energy; nearest: multiplier(a_bits=32, b_bits=32) multiply energy",
    ),
    "composed of what is not there": (
        HOROWITZ.energy_pj,
        (mac(8, 48), "mac"),
        "array.mac: table horowitz-2014 has no adder(bits=48) add energy; "
        "nearest: adder(bits=32) add energy; adder(bits=16) add energy",
    ),
    "idle": (
        HOROWITZ.energy_pj,
        (mac(8, 32), "idle"),
        "array.mac: table horowitz-2014 has no mac(operand_bits=8, accumulator_bits=32) idle "
        "energy; it has the energy of: adder, multiplier, float_adder, float_multiplier, sram, "
        "dram",
    ),
    "clock": (
        ALADDIN.energy_pj,
        (register(8), "clock"),
        "core.register: table aladdin-2014 has no register(bits=8) clock energy; "
        "nearest: register(bits=1) write energy",
    ),
    "too large": (
        HOROWITZ.energy_pj,
        (sram(64, 1 << 18), "read"),
        "buffer: table horowitz-2014 has no sram(word_bits=64, depth=262144, read_ports=1, "
        "write_ports=1) read energy; nearest: sram(word_bits=64, depth=131072) read/write energy; "
        "sram(word_bits=64, depth=4096) read/write energy",
    ),
    "many ports": (
        HOROWITZ.energy_pj,
        (sram(64, 1024, ports=2), "read"),
        "buffer: table horowitz-2014 has no sram(word_bits=64, depth=1024, read_ports=2, "
        "write_ports=1) read energy: its memories have at most one port to read and one to write",
    ),
    "no area": (
        EYERISS.area_um2,
        (mac(16, 32),),
        "array.mac: table eyeriss-2016 has no mac(operand_bits=16, accumulator_bits=32) area; "
        "it has the area of: nothing",
    ),
    "no leakage": (
        HOROWITZ.leakage_mw,
        (adder(8),),
        "core.adder: table horowitz-2014 has no adder(bits=8) leakage; "
        "it has the leakage of: nothing",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused(name):
    call, arguments, message = REFUSALS[name]
    assert refused(call, *arguments) == message


@pytest.mark.parametrize(
    ("interface", "pj", "voltage_v"),
    [
        ("ddr3", 20.3125, 1.5),
        ("ddr4", 20.3125, 1.2),
        ("ddr3-server", 70, 1.5),
        ("lpddr2", 40, 1.2),
        ("lpddr4", 8, 1.1),
        ("gddr5", 14, 1.5),
        ("gddr6", 415 / 64, 1.35),
        ("HBM2", 3.92, 1.2),
    ],
)
def test_dram_by_interface(interface, pj, voltage_v):
    estimator = DramEstimator(interface)
    for action in ("read", "write"):
        assert estimator.energy_pj(DRAM, action).value == pytest.approx(pj)
    assert estimator.voltage_v == voltage_v
    assert math.isnan(estimator.node_nm)
    assert estimator.name == f"dram:{interface.lower()}"


def test_dram_has_energy_and_nothing_else():
    hbm = DramEstimator("hbm2")
    assert hbm.energy_pj(DRAM, "read").source == "O'Connor et al., MICRO 2017, section 2"
    assert refused(hbm.energy_pj, adder(8), "add") == (
        "core.adder: dram:hbm2 has no adder(bits=8) add energy; it has: dram read/write energy"
    )
    assert refused(hbm.area_um2, DRAM) == "memory: dram:hbm2 is off the chip and has no area"
    assert refused(hbm.leakage_mw, DRAM) == "memory: dram:hbm2 is off the chip and has no leakage"
    assert refused(DramEstimator, "hbm") == ("no DRAM interface 'hbm'; did you mean hbm2?")


def test_the_7_nm_column_is_cheaper_than_the_45_nm_one():
    older = TableEstimator(load_table("tpu-2021-45nm"))
    for component, action in (
        (adder(8), "add"),
        (adder(24), "add"),
        (multiplier(16, 16), "multiply"),
        (mac(8, 32), "mac"),
        (sram(64, 2048), "read"),
    ):
        assert TPU.energy_pj(component, action).value < older.energy_pj(component, action).value


def test_both_tables_of_45_nm_agree():
    older = TableEstimator(load_table("tpu-2021-45nm"))
    for component, action in ((adder(8), "add"), (mac(8, 32), "mac"), (sram(64, 9000), "read")):
        expected = HOROWITZ.energy_pj(component, action).value
        assert older.energy_pj(component, action).value == pytest.approx(expected)


def test_a_memory_smaller_than_all_printed_is_the_smallest() -> None:
    small, printed = (HOROWITZ.energy_pj(sram(64, depth), "read") for depth in (16, 1024))
    assert small.value == printed.value
    assert "sram(word_bits=64, depth=1024), the smallest printed" in small.how
