"""SRAM banks from CACTI's grids: its own figures at its points, between them near what it says."""

from __future__ import annotations

import csv
import importlib
import math
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from energy_models.component import Component
from energy_models.errors import EnergyError
from energy_models.sram import SramEstimator, banks_of
from energy_models.sram_grid import CELLS, FIGURES, NODES_NM, PORTS, file_of, load_grid

KEPT = Path(__file__).parents[1] / "data" / "sram_banks.csv"
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FILES = [(node_nm, cell) for cell in CELLS for node_nm in NODES_NM]
WIDTHS = [8, 16, 24, 32, 48, 64, 96, 128]

every_file = pytest.mark.parametrize(("node_nm", "cell"), FILES)
files = st.sampled_from(FILES)
some_ports = st.sampled_from(PORTS)


def sram(word_bits: int, depth: int, read_ports: int = 0, write_ports: int = 0) -> Component:
    """A memory; with one shared port unless told otherwise."""
    sizes = {
        "word_bits": word_bits,
        "depth": depth,
        "read_ports": read_ports,
        "write_ports": write_ports,
    }
    return Component(name="ifmap.memory", kind="sram", attributes=sizes)


def answers(estimator: SramEstimator, memory: Component) -> dict[str, float]:
    return {
        "read_pj": estimator.energy_pj(memory, "read").value,
        "write_pj": estimator.energy_pj(memory, "write").value,
        "area_um2": estimator.area_um2(memory).value,
        "leakage_mw": estimator.leakage_mw(memory).value,
    }


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


class TestPoints:
    @pytest.mark.parametrize(
        ("node_nm", "read_pj", "write_pj", "area_um2", "leakage_mw"),
        [
            (45, 25.8695, 19.6486, 209046, 0.0109181),
            (22, 5.66959, 4.42749, 58601.4, 0.0405709),
        ],
    )
    def test_64_kib_of_64_bit_words_as_cacti_prints_it(
        self, node_nm: int, read_pj: float, write_pj: float, area_um2: float, leakage_mw: float
    ) -> None:
        # hwcomponents-cacti, which runs CACTI at 300 K, has the same but for the leakage
        assert answers(SramEstimator(node_nm=node_nm), sram(64, 8192)) == {
            "read_pj": read_pj,
            "write_pj": write_pj,
            "area_um2": area_um2,
            "leakage_mw": leakage_mw,
        }

    @every_file
    def test_every_point_is_the_least_of_those_as_large(self, node_nm: int, cell: str) -> None:
        """Nearly all are as CACTI prints them; the oracle is every larger point of the file."""
        estimator = SramEstimator(node_nm=node_nm, cell=cell)
        ports = {"1rw": (0, 0), "1r1w": (1, 1)}
        table = rows(file_of(node_nm, cell))
        lower = 0
        for row in table:
            bits, depth = int(row["word_bits"]), int(row["depth"])
            found = answers(estimator, sram(bits, depth, *ports[row["ports"]]))
            larger = [
                one
                for one in table
                if one["ports"] == row["ports"]
                and int(one["word_bits"]) >= bits
                and int(one["depth"]) >= depth
            ]
            for name in FIGURES:
                least = min(float(one[name]) for one in larger)
                assert 0.99 * least <= found[name] <= least * (1 + 1e-12)
                lower += found[name] < float(row[name])
        assert lower < 0.05 * len(table) * len(FIGURES)

    @every_file
    def test_a_file_is_complete(self, node_nm: int, cell: str) -> None:
        grid = load_grid(node_nm, cell)
        for ports in PORTS:
            assert grid.widths(ports) == WIDTHS
            for word_bits in WIDTHS:
                depths = list(grid.columns[ports][word_bits])
                assert depths[0] == max(32, 512 // word_bits)
                assert depths[-1] == 2 ** (28 - math.ceil(math.log2(word_bits)))
                fine = [depth for depth in depths if depth * word_bits <= 2**23]
                steps = {high / low for low, high in pairwise(fine)}
                assert steps <= {3 / 2, 4 / 3}

    def test_provenance_of_a_point(self) -> None:
        found = SramEstimator(node_nm=45).energy_pj(sram(64, 8192), "read")
        assert found.how == ""
        assert found.source == (
            "CACTI 7.0 (3DD prerelease; the source in hwcomponents-cacti 1.0.40 on PyPI), "
            "itrs-lstp, 45 nm, 350 K, one port to read or write"
        )


class TestBetween:
    @given(files, some_ports, st.integers(8, 128), st.floats(0, 1))
    def test_lies_between_the_points_around(
        self, file: tuple[int, str], ports: str, word_bits: int, share: float
    ) -> None:
        grid = load_grid(*file)
        least, most = grid.depths(ports, word_bits)
        depth = round(least * (most / least) ** share)
        found, _ = grid.figures(ports, word_bits, depth)
        low = max(width for width in WIDTHS if width <= word_bits)
        high = min(width for width in WIDTHS if width >= word_bits)
        corners = [
            column[end]
            for column in (grid.columns[ports][low], grid.columns[ports][high])
            for end in (
                max(at for at in column if at <= depth),
                min(at for at in column if at >= depth),
            )
        ]
        for value, *around in zip(found, *corners, strict=True):
            assert min(around) * (1 - 1e-12) <= value <= max(around) * (1 + 1e-12)

    def test_says_between_what(self) -> None:
        found = SramEstimator(node_nm=45).energy_pj(sram(72, 5000), "read")
        assert found.how == "interpolated between 64 and 96 bits, 4096 and 6144 words"

    @pytest.mark.parametrize(
        ("figure", "median", "worst"),
        [
            ("read_pj", 0.013, 0.29),
            ("write_pj", 0.011, 0.29),
            ("area_um2", 0.009, 0.16),
            ("leakage_mw", 0.005, 0.18),
        ],
    )
    def test_error_beside_cacti(self, figure: str, median: float, worst: float) -> None:
        errors: list[float] = []
        for row in rows(KEPT):
            if int(row["word_bits"]) > 128:
                continue
            grid = load_grid(int(row["node_nm"]), row["cell"])
            found, _ = grid.figures(row["ports"], int(row["word_bits"]), int(row["depth"]))
            errors.append(abs(found[FIGURES.index(figure)] / float(row[figure]) - 1))
        assert len(errors) == 400
        assert statistics.median(errors) < median
        assert max(errors) < worst


class TestTrends:
    @every_file
    def test_a_much_deeper_bank_never_costs_less(self, node_nm: int, cell: str) -> None:
        # up to that CACTI's own figures may fall: benchmarks/sram_fit.md
        factor = 4 if cell == "itrs-lstp" else 8
        for by_width in load_grid(node_nm, cell).columns.values():
            for column in by_width.values():
                for depth, figures in column.items():
                    larger = column.get(factor * depth, figures)
                    assert all(a <= b for a, b in zip(figures, larger, strict=True))

    @every_file
    def test_twice_the_depth_is_larger_and_leaks_more(self, node_nm: int, cell: str) -> None:
        for by_width in load_grid(node_nm, cell).columns.values():
            for column in by_width.values():
                for depth, figures in column.items():
                    if 2 * depth in column:
                        assert column[2 * depth][2] > 1.2 * figures[2]
                        assert column[2 * depth][3] > 1.2 * figures[3]

    def test_cacti_itself_reads_a_deeper_bank_for_less(self) -> None:
        # the organisation changes; said in the module, and kept as CACTI says it
        column = load_grid(45, "itrs-lstp").columns["1rw"][8]
        assert column[32768][0] < column[16384][0]

    @every_file
    def test_two_ports_take_about_twice_the_area(self, node_nm: int, cell: str) -> None:
        columns = load_grid(node_nm, cell).columns
        ratios = [
            columns["1r1w"][word_bits][depth][2] / shared[2]
            for word_bits, column in columns["1rw"].items()
            for depth, shared in column.items()
        ]
        assert 1.9 < statistics.median(ratios) < 2.1
        assert 1.4 < min(ratios) < max(ratios) < 2.6

    def test_high_performance_cells_leak_more(self) -> None:
        for node_nm in NODES_NM:
            low, high = (
                SramEstimator(node_nm=node_nm, cell=cell).leakage_mw(sram(64, 8192)).value
                for cell in CELLS
            )
            assert high > 100 * low


class TestComposition:
    def test_a_wide_word_is_banks_side_by_side(self) -> None:
        estimator = SramEstimator(node_nm=22)
        wide, one = sram(8192, 2048, 1, 1), sram(128, 2048, 1, 1)
        alone = answers(estimator, one)
        assert answers(estimator, wide) == {name: 64 * value for name, value in alone.items()}
        assert estimator.area_um2(wide).how == "64 banks of 128 bits side by side"

    def test_an_uneven_wide_word_is_rounded_up(self) -> None:
        found = SramEstimator(node_nm=22).area_um2(sram(257, 2048))
        assert found.how == "interpolated between 64 and 96 bits; 3 banks of 86 bits side by side"

    def test_narrow_words_lie_between_one_bit_and_8(self) -> None:
        estimator = SramEstimator(node_nm=22)
        single, whole = answers(estimator, sram(8, 512)), answers(estimator, sram(8, 4096))
        assert answers(estimator, sram(1, 4096)) == pytest.approx(single)
        for name, value in answers(estimator, sram(4, 4096)).items():
            law = single[name] * (whole[name] / single[name]) ** (2 / 3)
            assert value == pytest.approx(min(law, 4 * single[name]))
        how = "power law in the word's bits, from 1, stored 8 to a word, to 8"
        assert estimator.energy_pj(sram(4, 4096), "write").how == how

    @pytest.mark.parametrize("depth", [32, 100, 2048])
    def test_129_bits_never_cost_less_than_128(self, depth: int) -> None:
        estimator = SramEstimator(node_nm=45)
        one, two = answers(estimator, sram(128, depth)), answers(estimator, sram(130, depth))
        halves = answers(estimator, sram(65, depth))
        for name in FIGURES:
            assert two[name] == pytest.approx(max(one[name], 2 * halves[name]))

    def test_a_memory_of_few_words_is_at_most_one_of_32(self) -> None:
        estimator = SramEstimator(node_nm=45)
        assert answers(estimator, sram(512, 4, 1, 1)) == answers(estimator, sram(512, 32, 1, 1))
        found = estimator.area_um2(sram(64, 4, 1, 1))
        assert found.how == "as of 32 words, the fewest that CACTI was asked for"

    @given(st.integers(1, 20_000), st.integers(1, 100_000))
    def test_banks_hold_the_memory_and_little_more(self, word_bits: int, depth: int) -> None:
        banks = banks_of(word_bits, depth)
        assert 8 <= banks.word_bits <= 128
        bits = banks.count * banks.word_bits
        assert banks.depth == depth
        if word_bits < 8:
            assert (banks.count, banks.word_bits) == (1, 8)
        else:
            assert 0 <= bits - word_bits < banks.count
            assert (banks.count - 1) * 128 < word_bits


class TestRefusals:
    @pytest.mark.parametrize(
        ("memory", "message"),
        [
            (
                sram(100, 3_000_000),
                "ifmap.memory: sram(word_bits=100, depth=3000000, read_ports=0, write_ports=0): "
                "CACTI's grid has banks of 32 to 2097152 words of 100 bits, not of 3000000; "
                "nearest: 2097152 words",
            ),
            (
                sram(64, 8192, 2, 1),
                "ifmap.memory: CACTI's grid has no sram with 2 read and 1 write ports: give 0 and "
                "0 for one port that reads or writes, 1 and 1 for one of each, and for more "
                "readers as many memories that are written alike",
            ),
            (
                Component(name="array.adder", kind="adder", attributes={"bits": 8}),
                "array.adder: CACTI has figures for sram, not for adder(bits=8)",
            ),
        ],
    )
    def test_a_memory_that_the_grid_does_not_have(self, memory: Component, message: str) -> None:
        estimator = SramEstimator(node_nm=45)
        for ask in (
            estimator.area_um2,
            estimator.leakage_mw,
            lambda given: estimator.energy_pj(given, "read"),
        ):
            with pytest.raises(EnergyError) as refused:
                ask(memory)
            assert str(refused.value) == message

    def test_an_action_it_does_not_have(self) -> None:
        with pytest.raises(EnergyError) as refused:
            SramEstimator(node_nm=45).energy_pj(sram(64, 8192), "reads")
        assert str(refused.value) == "ifmap.memory: a sram does not 'reads'; did you mean read?"

    def test_a_word_outside_the_grid(self) -> None:
        with pytest.raises(EnergyError) as refused:
            load_grid(45, "itrs-lstp").figures("1rw", 256, 1024)
        assert str(refused.value) == (
            "CACTI's grid has words of 8 to 128 bits, not of 256; nearest: 128 bits"
        )

    @pytest.mark.parametrize(("node_nm", "close"), [(0, 22), (16, 22), (28, 32), (180, 90)])
    def test_a_node_without_a_table_in_cacti(self, node_nm: int, close: int) -> None:
        with pytest.raises(EnergyError) as refused:
            SramEstimator(node_nm=node_nm)
        assert str(refused.value) == (
            f"no SRAM grid of {node_nm} nm: CACTI has tables of its own for 22, 32, 45, 65, 90 nm; "
            f"scale from the nearest, {close} nm"
        )

    def test_an_unknown_cell(self) -> None:
        with pytest.raises(EnergyError) as refused:
            SramEstimator(node_nm=45, cell="itrs-lop")
        assert str(refused.value) == ("no SRAM cell 'itrs-lop'; did you mean itrs-lstp or itrs-hp?")


@pytest.mark.parametrize(
    ("node_nm", "cell", "name", "voltage_v"),
    [
        (22, "itrs-lstp", "cacti:22", 0.8),
        (45, "itrs-lstp", "cacti:45", 1.1),
        (45, "itrs-hp", "cacti:45:itrs-hp", 1.0),
        (90, "itrs-hp", "cacti:90:itrs-hp", 1.2),
    ],
)
def test_says_which_it_is(node_nm: int, cell: str, name: str, voltage_v: float) -> None:
    estimator = SramEstimator(node_nm=node_nm, cell=cell)
    assert (estimator.name, estimator.node_nm) == (name, node_nm)
    assert estimator.voltage_v == voltage_v


def test_the_page_shows_the_measured_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    fit = importlib.import_module("sram_fit")
    shown = (BENCHMARKS / "sram_fit.md").read_text(encoding="utf-8")
    for table in fit.tables(fit.kept()):
        assert "\n".join(table) in shown


def test_neither_pandas_nor_scipy_is_loaded() -> None:
    code = (
        "import sys; from energy_models.sram import SramEstimator; SramEstimator(node_nm=45); "
        "print({'pandas', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
