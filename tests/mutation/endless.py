"""A fault with which the model never ends, against `archsim verify` itself, which is to say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

from tests.mutation.operators import Mutant
from tests.mutation.sources import ROOT
from tests.mutation.trial import MUTANT_VARIABLE, Outcome, Subject

LIMIT = 150
"""Seconds of processor time instead of `rtl.time_limit.SECONDS`: kernels are compiled with the
fault in a third of it."""

COMMAND = """
import tests.mutation.plugin
import rtl.time_limit
from archsim.cli.main import main
rtl.time_limit.SECONDS = {limit}
main()
"""


def try_verify(mutant: Mutant, subjects: Sequence[Subject]) -> tuple[Outcome, str]:
    """Caught if a run ends with 1, by the limit or by a difference; else it was not."""
    environment = os.environ | {MUTANT_VARIABLE: json.dumps(asdict(mutant))}
    for number, one in enumerate(subjects, start=1):
        settings = [word for each in one.settings for word in ("--set", each)]
        asked = ["verify", one.design, *settings, "--cases", str(one.cases)]
        command = [sys.executable, "-c", COMMAND.format(limit=LIMIT), *asked]
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False
        )
        if ended.returncode == 1:
            told = [line for line in ended.stderr.splitlines() if line.strip()]
            return "caught", f"design {number}, verify ends: {told[-1] if told else 'it differs'}"
    return "survived", ""


__all__ = ["try_verify"]
