"""`archsim verify` ends, with 1, where a loop of the model does not."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from rtl.time_limit import TimeLimit

ENDLESS = """
import rtl.time_limit
from archsim.cli.main import main
from rtl.cli import verdicts

def endless(request):
    while True:
        pass
    yield

rtl.time_limit.SECONDS = 0.2
verdicts._cases = endless
main()
"""


def test_what_does_not_end_is_told_in_a_line() -> None:
    command = [sys.executable, "-c", ENDLESS, "verify", "edge-16", "--cases", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    told = "model and RTL differ: case 0 of seed 0 has taken 0.2 s of processor time and not ended"
    assert ended.stderr.strip().splitlines()[-1] == told


def test_only_cases_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setattr("rtl.time_limit.LOOKED_AT", 0.01)
    with TimeLimit(0.05) as limit:
        limit.case("one")
        limit.rest()
        _spend(0.2)
        assert not ended
        limit.case("two")
        _spend(0.2)
    assert set(ended) == {1}


def _spend(seconds: float) -> None:
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        pass
