"""Nothing that a caller is handed is also in a cache: changing it raises, or changes nothing later.

Everything that is reachable from results, designs, networks, technologies and accounts by public
names is changed in place, in a process of its own; the same questions are then asked again.
"""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from archsim import EDGE_16, simulate
from archsim.machine.registry import load_design, registered
from energy_models.frozen import FrozenDict, frozen

CHANGE_ALL = """
import dataclasses, inspect, json, sys
from collections.abc import Mapping
import numpy as np
from archsim import simulate, simulate_many
from archsim.machine.registry import design_record, load_design, registered
from archsim.energy import account
from archsim.papers import compare
from energy_models.technology import load_technology, shipped_technologies
from workloads.builtin import builtin, published

RUNS = (("edge-16", "alexnet"), ("volta", "squeezenet1.1"), ("vsq-5nm", "bert-base-128"))

def asked():
    found = [published("resnet50"), simulate_many(["edge-16", "tpu-v1"], "alexnet")]
    for design, network in RUNS:
        result = simulate(design, network)
        found += [result, account(result, "45nm"), account(result, "7nm"), load_design(design)]
    found += [load_design("scnn"), registered(), builtin("alexnet"), shipped_technologies()]
    return [*found, load_technology("45nm"), compare("mac-area")]

def answers():
    found = [str(published("resnet50")), str(sorted(registered()))]
    found.append(str(compare("mac-area").record()))
    cycles, names = simulate_many(["edge-16", "tpu-v1"], "alexnet")
    found += [str(cycles.tolist()), str(names), str(load_technology("45nm").record())]
    for design, network in RUNS:
        result = simulate(design, network)
        energy = account(result, "45nm")
        found += [result.to_json(), json.dumps(energy.record(), default=str)]
        found.append(str(load_design(design).machine.tolist()))
        found.append(str(design_record(load_design(design))))
    return found + [str(design_record(load_design("scnn"))), str(load_design("scnn").components)]

def reached(root, limit=200_000):
    seen, waiting, keep = set(), [root], []
    while waiting and len(keep) < limit:
        one = waiting.pop()
        plain = isinstance(one, (str, bytes, int, float, complex, type, type(None)))
        if plain or id(one) in seen or inspect.ismodule(one) or inspect.isroutine(one):
            continue
        seen.add(id(one))
        keep.append(one)
        if isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, (tuple, list, set, frozenset)):
            waiting += one
        elif not isinstance(one, np.ndarray):
            for name in dir(one):
                if not name.startswith("_") and name != "plot":
                    try:
                        waiting.append(getattr(one, name))
                    except Exception:
                        pass
    return keep

def change(one):
    if isinstance(one, np.ndarray):
        one[...] = 1
    elif isinstance(one, dict):
        one["another"] = 1
        one.clear()
    elif isinstance(one, (list, set)):
        one.clear()
    elif dataclasses.is_dataclass(one) and dataclasses.fields(one):
        setattr(one, dataclasses.fields(one)[0].name, None)
    else:
        return False
    return True

before = answers()
changed = refused = 0
for one in reached(asked()):
    try:
        changed += change(one)
    except (TypeError, ValueError, AttributeError):
        refused += 1
after = answers()
differ = [at for at, pair in enumerate(zip(before, after)) if pair[0] != pair[1]]
print(json.dumps({"changed": changed, "refused": refused, "differ": differ}))
"""


def test_what_a_caller_changes_changes_nothing_later() -> None:
    run = subprocess.run([sys.executable, "-c", CHANGE_ALL], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout)
    assert found["refused"] > 500
    assert found["differ"] == []


def test_layers_of_one_shape_cannot_be_written() -> None:
    layer = simulate("edge-16", "alexnet").layers[0]
    for mapping in (layer.where, layer.bytes_moved, layer.stored, layer.per_pe):
        with pytest.raises(TypeError, match="cannot be changed"):
            mapping["computing"] = 0  # pyright: ignore
    with pytest.raises(ValueError, match="read-only"):
        EDGE_16.machine[0] = 1
    with pytest.raises(TypeError, match="cannot be changed"):
        registered()["mine"] = load_design("edge-16")


def test_frozen_dictionaries_are_dictionaries() -> None:
    given = {"a": 1, "b": {"c": [1, {"d": 2}]}}
    held = frozen(given)
    assert held == {"a": 1, "b": {"c": (1, {"d": 2})}}
    assert json.loads(json.dumps(held)) == given
    assert held | {"e": 1} == {**held, "e": 1}
    for other in (pickle.loads(pickle.dumps(held)), copy.deepcopy(held), copy.copy(held)):
        assert other == held
        assert isinstance(other, FrozenDict)
    for change in (
        lambda: held.update(a=2), lambda: held.pop("a"), lambda: held.setdefault("z", 1),
        held.clear, held.popitem, lambda: held.__setitem__("a", 2), lambda: held.__delitem__("a"),
        lambda: held.__ior__({"a": 2}), lambda: held["b"].clear(),  # pyright: ignore
    ):  # fmt: skip
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    assert held["a"] == 1


def test_results_can_still_be_copied_and_pickled() -> None:
    result = simulate("edge-16", "alexnet")
    for other in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert other.to_json() == result.to_json()
    assert np.array_equal(pickle.loads(pickle.dumps(EDGE_16)).machine, EDGE_16.machine)
