"""Samplers: designs each once, all of them allowed, the same from the same seed, and learned of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archsim import EDGE_16
from archsim.machines.tensorcore.design import VOLTA
from archsim.sweeps import MachineSpace, Search, Space, Study, front_of
from archsim.sweeps.points import Grid
from archsim.sweeps.samplers import sampler_of
from archsim.sweeps.samplers.drawn import permuted
from archsim.sweeps.samplers.genes import Genes

ARRAYS = MachineSpace(
    design=EDGE_16,
    fields={"rows": [2, 4, 8, 16], "columns": [4, 8, 16], "bias_words": [64, 128]},
    constraints=("rows <= columns",),
)
CORES = MachineSpace(
    design=VOLTA, fields={"clock_hz": [1e9, 2e9], "ifmap_memory.capacity_bytes": [32768, 65536]}
)
TWO_KINDS = Space(
    machines=(ARRAYS, CORES), networks=("alexnet",), objectives=("seconds", "footprint")
)
ALLOWED = 2 * (3 + 3 + 2 + 1) + 4


@settings(max_examples=40)
@given(count=st.integers(1, 3000), seed=st.integers(0, 99))
def test_a_permutation_takes_every_number_once(count: int, seed: int) -> None:
    found = permuted(np.arange(count, dtype=np.int64), count, seed)
    assert np.array_equal(np.sort(found), np.arange(count))


def test_a_permutation_of_the_largest_space() -> None:
    found = permuted(np.arange(100, dtype=np.int64), 1 << 62, 3)
    assert len(set(found.tolist())) == 100
    assert (found >= 0).all()
    assert found.max() > 1 << 61  # spread over all of it
    assert np.median(found) > 1 << 60


@pytest.mark.parametrize("method", ["exhaustive", "random", "sobol"])
def test_all_allowed_designs_come_once(method: str) -> None:
    grid = Grid(TWO_KINDS)
    sampler = sampler_of(grid, Search(method=method, designs=1000))
    asked = [sampler.ask(7) for _ in range(20)]
    numbers = np.concatenate(asked)
    assert len(numbers) == len(set(numbers.tolist())) == ALLOWED
    assert grid.allowed(numbers).all()
    assert all(len(one) == 7 for one in asked[: ALLOWED // 7])
    assert len(sampler.ask(7)) == 0


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_seeds_draw_others_and_the_same_seed_the_same(method: str) -> None:
    def drawn(seed: int) -> list[int]:
        sampler = sampler_of(Grid(TWO_KINDS), Search(method=method, designs=9, seed=seed))
        return [int(number) for _ in range(9) for number in sampler.ask(4)]

    assert len(drawn(1)) == 9
    assert drawn(1) == drawn(1) != drawn(2)


def test_genes_stand_for_every_design() -> None:
    genes = Genes(Grid(TWO_KINDS))
    numbers = np.arange(TWO_KINDS.design_count, dtype=np.int64)
    made = genes.genes(numbers)
    assert (made <= genes.highest).all()
    assert np.array_equal(genes.numbers(made), numbers)


BOWL = MachineSpace(
    design=EDGE_16,
    fields={
        "rows": {"from": 1, "to": 64},
        "columns": {"from": 1, "to": 64},
        "bias_words": {"from": 1, "to": 64},
        "off_chip.latency_cycles": {"from": 1, "to": 64},
        "ifmap_memory.capacity_bytes": {"powers_of_two": [16384, 262144]},
    },
)


def hypervolume(values: np.ndarray) -> float:
    """Of two objectives scaled to at most 1, over the corner (1, 1)."""
    kept = values[front_of(values)]
    kept = kept[np.argsort(kept[:, 0])]
    edges = np.append(kept[1:, 0], 1.0)
    return float(((edges - kept[:, 0]) * (1.0 - kept[:, 1])).sum())


@pytest.mark.parametrize("method", ["nsga2", "tpe"])
def test_those_that_learn_find_better_designs_than_chance(method: str) -> None:
    """On made-up objectives of fields: a trade of size against the distance from rows == columns.

    Excluded designs are never asked for; requirements draw the search to what fulfils them.
    """
    space = Space(machines=(BOWL,), networks=("alexnet",), objectives=("cycles", "footprint"))
    grid = Grid(space)

    def objectives(numbers: np.ndarray) -> np.ndarray:
        columns = grid.columns(numbers)
        four = [columns[name].astype(float) for name in list(columns)[1:5]]
        size = columns["ifmap_memory.capacity_bytes"].astype(float) / 262144
        aims = (30, 20, 50, 11)
        away = [((one - aim) / 64) ** 2 for one, aim in zip(four, aims, strict=True)]
        first = sum(away) + 0.02 / size
        return np.stack([np.minimum(first, 1), size], axis=1)

    def search(method: str) -> float:
        sampler = sampler_of(grid, Search(method=method, designs=120, population=20, seed=2))
        seen = []
        while len(numbers := sampler.ask(20)):
            seen.append(numbers)
            sampler.tell(numbers, objectives(numbers))
        numbers = np.concatenate(seen)
        assert len(numbers) == len(set(numbers.tolist())) == 120
        return hypervolume(objectives(numbers))

    assert search(method) > search("random") + 0.03


def test_a_search_that_was_ended_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    space = Space(
        machines=(BOWL,),
        networks=("alexnet",),
        objectives=("cycles", "footprint"),
        requirements=("footprint_bytes <= 400000",),
    )
    whole = Search(method="nsga2", designs=36, population=12, seed=5)
    with Study.begin(tmp_path / "whole", space) as study:
        study.run(whole)
        wanted = set(study.frame()["number"])
    with Study.begin(tmp_path / "parts", space) as study:
        assert study.run(replace(whole, designs=17)).new == 17
        ran = study.run(whole)
        assert (ran.new, ran.known) == (19, 17)
        assert set(study.frame()["number"]) == wanted
