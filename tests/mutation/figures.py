"""Faults in what figures are made of, areas and energies: fast tests are to catch them.

`archsim verify` compares words, cycles and counts, and no prices: whoever changes a component, what
an action makes it do, or what a technology says of it has the tests of these alone.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from typing import Any

from tests.mutation.operators import Mutant
from tests.mutation.sources import ROOT, mutants_run_by, within
from tests.mutation.trial import HOUSE, Outcome, Subject, put_in

FIGURES = (
    "archsim.blocks", "archsim.energy", "archsim.tiled.actions", "archsim.tiled.components",
    "archsim.machines.*components", "archsim.machines.scnn.accounting", "archsim.memories.*cells",
    "archsim.memories.*components", "archsim.memory.plain", "archsim.memory.off_chip",
    "energy_models.*",
)  # fmt: skip
TECHNOLOGIES = ("45nm", "16nm", "180nm")

SHARED = (
    "tests/archsim/test_energy.py", "tests/archsim/test_energy_groups.py",
    "tests/archsim/test_core_components.py", "tests/energy_models",
    "tests/rtl/test_counted_actions.py",
)  # fmt: skip
TESTS: dict[str, tuple[str, ...]] = {
    "systolic": (*SHARED, "tests/rtl/test_components.py"),
    "tensorcore": (*SHARED, "tests/rtl/test_components.py"),
    "vsq": (*SHARED, "tests/rtl/test_components.py"),
    "scnn": (
        "tests/archsim/test_scnn_components.py", "tests/archsim/test_one_hot_components.py",
        *SHARED, "tests/rtl/test_scnn_components.py",
    ),
    "sparsetrain": (*SHARED, "tests/archsim/test_sparsetrain.py", "tests/rtl/test_sparsetrain.py"),
}  # fmt: skip
"""By kind, quickest first; files or folders."""


class FigureTrials:
    """Trials of faults in the figures of some subjects."""

    def __init__(self, kind: str, subjects: Sequence[Subject]) -> None:
        self.tests, self.subjects = TESTS[kind], subjects

    def mutants(self) -> list[Mutant]:
        """Of the lines by which the subjects have areas and energies."""
        return mutants_run_by(self._price, lambda module: within(module, FIGURES))

    def _price(self) -> None:
        from archsim.energy import account, action_counts
        from archsim.layer.intake import Drawing
        from archsim.simulate import simulate
        from rtl.registry import verification_of
        from workloads.layers import Network

        for subject in self.subjects:
            design: Any = subject.load()
            layer: Any = verification_of(design).small_layer(design)
            network = Network(name="small", source="drawn", layers=(layer,))
            operands = design.intake.synthetic(layer, Drawing(seed=1))
            found = simulate(design, network, operands={layer.name: operands})
            action_counts(found.layers[0], design)
            for technology in TECHNOLOGIES:
                account(found, technology).record()

    def prepare(self) -> None:
        """Nothing: the tests are there."""

    def run(self, mutant: Mutant) -> tuple[Outcome, str]:
        """In a process of its own: the outcome, and the first test that fails."""
        import pytest

        put_in(mutant, HOUSE)
        os.chdir(ROOT)
        said = io.StringIO()
        options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--no-header"]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            ended = pytest.main([*options, *self.tests])
        if ended == pytest.ExitCode.OK:
            return "survived", f"passes {', '.join(self.tests)}"
        failed = [
            line for line in said.getvalue().splitlines() if line.startswith(("FAILED", "ERROR"))
        ]
        test = failed[0].split(" - ")[0].partition(" ")[2] if failed else "pytest"
        return "caught by tests", test


__all__ = ["FigureTrials"]
