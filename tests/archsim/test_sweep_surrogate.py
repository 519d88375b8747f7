"""The learned order of candidates: better than chance, of what was simulated alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from archsim.layer.intake import Drawing
from archsim.machines.scnn.design import SCNN_4PE
from archsim.simulate import simulate
from archsim.sweeps import MachineSpace, Search, Space, Study, front_of
from archsim.sweeps.samplers import surrogate as samplers
from archsim.sweeps.surrogate import Surrogate, in_layers, rank_correlation
from workloads.layers import Conv2d, Network

pytest.importorskip("sklearn", reason="pip install 'archsim[sweep]'")

CONV = Conv2d(
    name="conv", channels=6, filters=8, ifmap_height=6, ifmap_width=6, kernel_height=3,
    kernel_width=3,
)  # fmt: skip
SPARSE = MachineSpace(
    design=SCNN_4PE,
    fields={"banks": [4, 8, 16, 32], "filter_group": [2, 4, 8], "weight_lanes": [2, 4]},
    constraints=("banks * weight_lanes < 100",),
    drawing=Drawing(density=0.5, seed=3),
)
SPACE = Space(
    machines=(SPARSE,),
    networks=(Network(name="tiny", layers=(CONV,), source="a test"),),
    objectives=("cycles", "footprint"),
)


def test_a_study_keeps_what_was_simulated_alone(tmp_path: Path) -> None:
    """It is continued, and goes on to the end of the space; each value is its simulation's."""
    search = Search(method="surrogate", population=4, designs=16)
    with Study.begin(tmp_path, SPACE) as study:
        assert study.run(search).new == 16
        before = set(study.frame()["number"])
        ran = study.run(replace(search, designs=100))
        assert ran.new == 21 - 16
        frame = study.frame()
        assert before < set(frame["number"])
        assert len(set(frame["number"])) == len(frame) == 21
        for _, row in frame.iloc[::7].iterrows():
            design = study.design(row["number"])
            values = {"conv": design.intake.synthetic(CONV, SPARSE.drawing)}
            network = SPACE.networks[0]
            assert row["cycles"] == simulate(design, network, operands=values).cycles  # pyright: ignore


def trade(genes: np.ndarray) -> np.ndarray:
    """Two objectives of made-up fields, one of them with a cliff; corners are refused."""
    a, b, c = genes.T.astype(float)
    first = 1e6 / (1 + a) * (1 + np.abs(b - 7)) + 1e4 * (c > 5)
    values = np.stack([first, (1 + a) ** 1.5 * (3 + c) * 100], axis=1)
    values[(a > 13) & (b > 13)] = np.nan
    return values


GENES = np.stack(np.meshgrid(*[np.arange(16)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


def test_it_orders_designs_that_it_was_not_told_of() -> None:
    order = np.random.default_rng(0).permutation(len(GENES))
    fitted, held = order[:400], order[400:]
    truth = trade(GENES)
    told = Surrogate(GENES[fitted], truth[fitted], 1).values(GENES[held])
    refused = np.isnan(truth[held]).any(axis=1)
    guessed = np.isnan(told).any(axis=1)
    assert (refused == guessed).mean() > 0.98
    both = ~refused & ~guessed
    for column in range(2):
        assert rank_correlation(told[both, column], truth[held][both, column]) > 0.95
    again = Surrogate(GENES[fitted], truth[fitted], 1).values(GENES[held])
    assert np.array_equal(told, again, equal_nan=True)


def test_layers_are_fronts_of_what_is_left() -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(0, 9, (60, 2)).astype(float)
    values[::13] = np.nan
    whole = in_layers(values, 1000)
    assert sorted(whole.tolist()) == list(range(60))
    assert np.isnan(values[whole[-5:]]).all()
    first = front_of(values)
    assert set(whole[: len(first)].tolist()) == set(first.tolist())
    for most in (1, 7, 30, 57):
        some = in_layers(values, most)
        assert len(set(some.tolist())) == most
    worst = values[in_layers(values, 20)]
    rest = values[np.setdiff1d(np.arange(60), in_layers(values, 20))]
    assert not any((one <= worst).all(axis=1).any() and (one < worst).all() for one in rest)


def test_it_wants_fewer_designs_than_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a space that is larger than what it predicts."""
    from archsim import EDGE_16
    from archsim.sweeps.points import Grid
    from archsim.sweeps.samplers import sampler_of

    names = ("rows", "columns", "bias_words")
    fields = {name: {"from": 1, "to": 16} for name in names}
    machine = MachineSpace(design=EDGE_16, fields=fields, constraints=("bias_words != 3",))
    grid = Grid(Space(machines=(machine,), networks=("alexnet",), objectives=("cycles", "area")))
    allowed = np.flatnonzero(grid.allowed(np.arange(len(GENES))))
    front = set(allowed[front_of(trade(GENES)[allowed])].tolist())

    def found(method: str) -> int:
        sampler = sampler_of(grid, Search(method=method, designs=150, population=25, seed=4))
        seen: list[int] = []
        while len(numbers := sampler.ask(25)):
            assert grid.allowed(numbers).all()
            sampler.tell(numbers, trade(GENES[numbers]))
            seen += numbers.tolist()
        assert len(seen) == len(set(seen)) == 150
        return len(front & set(seen))

    monkeypatch.setattr(samplers, "CANDIDATES", 1024)
    assert found("surrogate") > 2 * found("random") + 5
