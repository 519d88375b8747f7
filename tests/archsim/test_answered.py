"""What a machine answers of a layer is looked at: each result, and what several share once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from archsim.causes import CAUSES
from archsim.errors import InputError
from archsim.machine import answered
from archsim.machine.answered import Checks
from archsim.result import Actions, LayerResult


def _result(**changes: Any) -> LayerResult:
    where = dict.fromkeys(CAUSES, 0) | {"computing": 4}
    given: dict[str, Any] = {"name": "m", "kind": "matmul", "macs": 4, "macs_per_cycle": 1}
    given |= {"cycles": 4, "where": where, "actions": Actions({"pair": 3})}
    return LayerResult(**given | changes)


def test_what_layers_share_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    whole = answered._check_whole
    monkeypatch.setattr(
        answered,
        "_check_whole",
        lambda one, machine: (looked.append(one.name), whole(one, machine)),
    )
    checks, first = Checks("some"), _result()
    for one in (first, first.told(name="n"), _result(name="other")):
        assert checks.checked(one) is one
    assert looked == ["m", "other"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cycles": 4.0}, "cycles must be whole numbers, not cycles 4.0"),
        ({"cycles": 5}, "cycles by cause must sum to its 5 cycles, not to 4"),
        ({"macs_per_cycle": True}, "macs_per_cycle must be a positive whole number, not True"),
        ({"actions": Actions({"pair": float("nan")})}, "actions must be whole numbers"),  # pyright: ignore
        ({"bytes_moved": {"ifmap": 1}}, "bytes by port must be counts of ifmap, weight"),
    ],
)
def test_a_wrong_one_behind_a_right_one_is_seen(change: dict[str, Any], why: str) -> None:
    """Though all else is shared."""
    checks, right = Checks("some"), _result()
    checks.checked(right)
    with pytest.raises(InputError, match=why):
        checks.checked(replace(right, **change))


def test_counts_that_their_machine_can_still_change_are_looked_at_each_time() -> None:
    counts: Any = {"pair": 3}
    checks, given = Checks("some"), _result(actions=counts)
    checks.checked(given)
    counts["pair"] = 2.5
    with pytest.raises(InputError, match=r"not pair 2\.5"):
        checks.checked(given)
