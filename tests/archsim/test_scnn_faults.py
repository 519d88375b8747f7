"""Faults put into the fast model of the sparse core are seen by comparison with the stepped one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from faulty_module import Fault, faulty_module
from scnn_cases import Case, agrees, answers, operands_of

from archsim.machines.scnn import addresses, backlog, kernels, pass_scan, sent, timing, weights
from archsim.machines.scnn.design import Scnn
from archsim.machines.scnn.mapping import Mapping
from workloads.layers import Conv2d

FAULTS: dict[str, tuple[ModuleType, str, str]] = {
    "a missed conflict": (
        kernels,
        "end = max(int(idle[bank]), start) + sent",
        "end = start + sent",
    ),
    "banks that take two products": (
        kernels,
        "return max(1, latest - start - ",
        "return max(1, (latest - start) // 2 - ",
    ),
    "a pair without products in no cycle": (
        kernels,
        "return max(1, latest - start",
        "return max(0, latest - start",
    ),
    "a queue of one place more": (backlog, "ones * (most - places)", "ones * (most - places - 1)"),
    "a queue of one place less": (
        backlog,
        "- int(np.int64(fields[PLACES])) + 1",
        "- int(np.int64(fields[PLACES])) + 2",
    ),
    "no queue": (backlog, "(design.bank_queue, most)", "(1, most)"),
    "one by one, a queue of one place more": (kernels, "[PLACES])) + 1)", "[PLACES])))"),
    "one by one, a queue of one place less": (kernels, "[PLACES])) + 1)", "[PLACES])) + 2)"),
    "packed queues empty at each pair": (
        backlog,
        "    gone = fields[ONES] * np.uint64(min(passed, int(np.int64(fields[MOST]))))\n",
        "    gone = fields[ONES] * fields[MOST]\n",
    ),
    "packed queues that never empty": (
        backlog,
        "np.uint64(min(passed, int(np.int64(fields[MOST]))))",
        "np.uint64(min(1, int(np.int64(fields[MOST]))))",
    ),
    "packed queues emptied below nothing": (
        backlog,
        "return left & (more - (more >> (fields[BITS] - np.uint64(1))))",
        "return left & ~fields[HIGHEST]",
    ),
    "two banks in a field": (
        backlog,
        "banks % each * _bits(design)",
        "banks % each // 2 * _bits(design)",
    ),
    "a lane of activations without a value": (
        addresses,
        "2 * addresses * scale",
        "addresses // 2 * scale",
    ),
    "a lane of weights without a value": (weights, "addresses * scale", "0"),
    "queues empty at each pair": (
        kernels,
        "lanes, plane, idle)",
        "lanes, plane, 0 * idle)",
    ),
    "queues empty at each block": (
        kernels,
        "            now = ends[pe]\n",
        "            now = ends[pe]\n            idle[pe] = 0\n",
    ),
    "packed queues empty at each block": (
        kernels,
        "            now = ends[pe]\n",
        "            now = ends[pe]\n            backlog[pe] = 0\n",
    ),
    "queues empty at each group": (
        pass_scan,
        "self._ends[:] = start",
        "self._ends[:], self._state[2][:] = start, 0",
    ),
    "packed queues empty at each group": (
        pass_scan,
        "self._ends[:] = start",
        "self._ends[:], self._state[1][0][:] = start, 0",
    ),
    "queues that stand while the PE waits": (
        kernels,
        "            waited += start - now\n            cycles = ",
        "            waited += start - now\n            idle += start - now\n            cycles = ",
    ),
    "packed queues that stand while the PE waits": (
        kernels,
        "send_pair(start - before,",
        "send_pair(now - before,",
    ),
    "one queue for all PEs": (kernels, "released, idle[pe],", "released, idle[0],"),
    "one packed queue for all PEs": (kernels, "backlog[pe], ", "backlog[0], "),
    "the drain before the queues are empty": (timing, "design.pipeline_latency_cycles", "3"),
    "products that are not sent take a cycle": (kernels, "sent = int(bank < banks)", "sent = 1"),
    "a tap of another phase": (
        sent,
        "r * columns.taps(column_phase) + s:",
        "r * columns.taps(0) + s:",
    ),
    "all products counted": (sent, "= seen[: max(len(seen) - offset, 0)]", "= 1"),
    "products above or below the plane": (addresses, "outer(rows != NOWHERE,", "outer(rows < 99,"),
    "products beside the plane": (addresses, "columns != NOWHERE)", "columns < 99)"),
    "products before the plane": (
        addresses,
        "p - region.start if p in region",
        "max(p - region.start, 0) if p < axis.outputs",
    ),
    "products behind the plane": (
        addresses,
        "p - region.start if p in region",
        "min(p, axis.outputs - 1) - region.start if p >= 0",
    ),
    "a table of another PE": (addresses, "numbers.append(found[key])", "numbers.append(0)"),
    "places left at the first activations": (
        kernels,
        "        last = a + 1 == own[1]\n        for w in range(begin, end):\n"
        "            issue = _issue(crossings[w]",
        "        last = a == own[0]\n        for w in range(begin, end):\n"
        "            issue = _issue(crossings[w]",
    ),
    "packed, places left at the first activations": (
        kernels,
        "        last = a + 1 == own[1]\n        for w in range(begin, end):\n"
        "            issue = _issue(crossings[np",
        "        last = a == own[0]\n        for w in range(begin, end):\n"
        "            issue = _issue(crossings[np",
    ),
    "packed, a weight used as it crosses": (kernels, "np.uint64(w)], (", "np.uint64(w)] - 1, ("),
    "a weight used as it crosses": (kernels, "crossings[w], (", "crossings[w] - 1, ("),
    "gaps of the port ignored": (
        kernels,
        "scalars[CROSSED] + intervals[w]",
        "scalars[CROSSED] + 1",
    ),
    "places written a cycle early": (
        kernels,
        "free[place] = max(ends[w], skipped)",
        "free[place] = max(ends[w] - 1, skipped)",
    ),
    "places free in the last PE only": (
        kernels,
        "ends[w - begin] = max(ends[w - begin], issue + 2 if late else now)",
        "ends[w - begin] = issue + 2 if late else now",
    ),
    "packed, places free in the last PE only": (
        kernels,
        "ends[at] = max(ends[at], issue + 2 if late else now)",
        "ends[at] = issue + 2 if late else now",
    ),
    "the FIFO ignored": (kernels, "intervals[w], free[place])", "intervals[w], 1)"),
    "a skip before its last vector": (
        kernels,
        "crossings[vectors[1] - 1],",
        "crossings[vectors[0]],",
    ),
    "places of a skipped block free a cycle early": (
        kernels,
        "skipped = max(skipped, given)",
        "skipped = max(skipped, given - 1)",
    ),
    "a skip in no cycle": (kernels, "return start + 1, start - now,", "return start, start - now,"),
    "places of a skipped block free at once": (
        kernels,
        "free[place] = max(ends[w], skipped)",
        "free[place] = ends[w]",
    ),
    "a barrier of channels ignored": (kernels, "if inside and barrier_blocks", "if 0"),
    "a barrier of blocks": (kernels, "% barrier_blocks == 0", ">= 0"),
    "a FIFO of one place more": (
        pass_scan,
        "self._mapping.used_pes, self._design.weight_fifo_vectors\n",
        "self._mapping.used_pes, self._design.weight_fifo_vectors + 1\n",
    ),
    "weights before the command": (pass_scan, "1 + service.latency_cycles", "0"),
    "a barrier of groups ignored": (
        timing,
        "max(int(ends[group]) + design.barrier_cycles, free) + 1",
        "max(int(pe_ends[group].min()), free) + 1",
    ),
    "a barrier known at once": (timing, " + design.barrier_cycles", ""),
    "accumulators not waited for": (
        timing,
        "max(int(ends[group]) + design.barrier_cycles, free) + 1",
        "int(ends[group]) + 1",
    ),
    "a group that starts a cycle early": (
        timing,
        "max(int(ends[group]) + design.barrier_cycles, free) + 1",
        "max(int(ends[group]), free)",
    ),
    "the drain a cycle early": (
        timing,
        "design.pipeline_latency_cycles",
        "design.pipeline_latency_cycles - 1",
    ),
    "two drains at once": (timing, "max(emptied, free, ", "max(0, 0, "),
    "a halo forgotten": (timing, "mapping.halo_cycles(group) + ", ""),
    "the ofmap a cycle early": (
        timing,
        "free + design.ofmap_latency_cycles",
        "free + design.ofmap_latency_cycles - 1",
    ),
    "compute before the last activations": (timing, "int(loaded[-1]) + 1", "int(loaded[-1])"),
    "skipped blocks counted as pairs": (
        pass_scan,
        "(self._vectors * ~self._empty)",
        "self._vectors",
    ),
    "addresses of another pitch": (addresses, "append(row * pitch", "append(row * (pitch + 1)"),
    "weights of another pitch": (weights, "-(r * span_pitch + s)", "-(r + s)"),
    "runs of zeros without a place": (
        weights,
        "- before - 1) >> index_bits",
        "- before - 1) >> 60",
    ),
    "a list of nothing in no vector": (weights, "vector += max(1, ", "vector += max(0, "),
    "pairs are issued where there is no room": (
        kernels,
        "before[0] + 1, before[1]",
        "0, before[0] + 1",
    ),
    "two pairs are issued in a cycle": (
        kernels,
        "before[0] + 1, before[1]",
        "before[0], before[1]",
    ),
    "room behind the third pair before": (
        kernels,
        "four, three, two, one = three, two, one, start\n",
        "four, three, two, one = two, two, one, start\n",
    ),
    "one by one, room behind the third pair before": (
        kernels,
        "four, three, two, one = start + cycles, three,",
        "four, three, two, one = start + cycles, two,",
    ),
    "room behind the third, of a skip": (
        kernels,
        "= issued[THIRD], issued[SECOND], issued[LAST]",
        "= issued[SECOND], issued[SECOND], issued[LAST]",
    ),
    "weights are not decoded": (kernels, " + stages[DECODE]", ""),
    "a skip is sent as it is issued": (
        kernels,
        "start = max(now, issue + stages[ISSUE])",
        "start = max(now, issue)",
    ),
    "a skip gives its places back a cycle early": (
        kernels,
        "issue + 2 if stages[ISSUE] else",
        "issue + 1 if stages[ISSUE] else",
    ),
    "a pair gives its place back a cycle early": (
        kernels,
        "ends[w - begin] = max(ends[w - begin], issue + 2",
        "ends[w - begin] = max(ends[w - begin], issue + 1",
    ),
    "packed, a pair gives its place back a cycle early": (
        kernels,
        "ends[at] = max(ends[at], issue + 2",
        "ends[at] = max(ends[at], issue + 1",
    ),
    "a pair gives its place back as it ends": (
        kernels,
        "ends[w - begin] = max(ends[w - begin], issue + 2 if late else now)",
        "ends[w - begin] = max(ends[w - begin], now)",
    ),
    "packed, a pair gives its place back as it ends": (
        kernels,
        "ends[at] = max(ends[at], issue + 2 if late else now)",
        "ends[at] = max(ends[at], now)",
    ),
    "activations are there at once": (
        pass_scan,
        "+= self._stages.fetch - 1",
        "-= 1",
    ),
    "issues of the group before": (pass_scan, "self._issues[:] = start", "self._issues[:, 1:] = 0"),
    "the ifmap is seen at once": (timing, " + design.load_latency_cycles", ""),
    "a bit of the hash": (addresses, "(y & 2) << 3", "(y & 2) << 2"),
    "another bank": (addresses, "address % design.banks", "address // 2 % design.banks"),
}

MAPPING_FAULTS: dict[str, tuple[str, Callable[[Any, int], int]]] = {
    "lists that end in no cycle": (
        "output_cycles",
        lambda self, group: self.group_filters(group) * self.rows.own * self.columns.own,
    ),
    "a halo of own rows only": (
        "halo_cycles",
        lambda self, group: (
            2
            * self.group_filters(group)
            * (
                self.rows.own * (self.columns.most_below + self.columns.most_above)
                + (self.rows.most_below + self.rows.most_above) * self.columns.own
            )
        ),
    ),
    "a halo of whole groups": (
        "halo_cycles",
        lambda self, group: (
            2
            * self.group_size
            * (
                self.rows.extent * (self.columns.most_below + self.columns.most_above)
                + (self.rows.most_below + self.rows.most_above) * self.columns.own
            )
        ),
    ),
}


_PLAIN = "inlined = lambda function: function"
_CALLED = ("@kernel(", "@(lambda *_, **__: inlined)(")

_PARTS: dict[ModuleType, tuple[Fault, ...]] = {
    backlog: (("from archsim.kernels import inlined", _PLAIN),),
    kernels: (("from archsim.kernels import inlined, kernel", _PLAIN), _CALLED),
    addresses: (),
    sent: (),
    weights: (("from archsim.kernels import kernel", _PLAIN), _CALLED),
    pass_scan: (),
    timing: (),
}
"""The modules, and what is said in them so that Python runs their kernels."""


def _few_cases() -> list[Case]:
    """Small layers in which every fault shows."""
    conv = Conv2d(
        name="c", channels=3, filters=5, ifmap_height=7, ifmap_width=6, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, relu=True,
    )  # fmt: skip
    strided = Conv2d(
        name="s", channels=2, filters=7, ifmap_height=9, ifmap_width=9, kernel_height=3,
        kernel_width=4, stride_height=2, stride_width=3, pad_top=1,
    )  # fmt: skip
    wide = Conv2d(
        name="w", channels=1, filters=9, ifmap_height=8, ifmap_width=8, kernel_height=1,
        kernel_width=1,
    )  # fmt: skip
    thin = Conv2d(
        name="t", channels=6, filters=8, ifmap_height=4, ifmap_width=4, kernel_height=1,
        kernel_width=1,
    )  # fmt: skip
    tight = Scnn(
        grid_rows=2, grid_columns=2, weight_lanes=2, ifmap_lanes=2, banks=4, bank_entries=64,
        weight_fifo_vectors=13, filter_group=2, bank_queue=2, index_bits=1,
    )  # fmt: skip
    queued = replace(tight, banks=1, bank_entries=256, weight_fifo_vectors=2, bank_queue=4)
    chosen = [
        (tight, conv, (0.6, 0.6), 3),
        (replace(tight, banks=1, bank_entries=256, bank_queue=5), conv, (0.5, 0.4), 9),
        (queued, thin, (0.7, 0.8), 9),
        (replace(tight, pipelined_pes=True), conv, (0.6, 0.6), 3),
        (replace(tight, pipelined_pes=True, weight_fifo_vectors=6), conv, (0.5, 0.3), 0),
        (replace(queued, pipelined_pes=True), thin, (0.7, 0.8), 2),
        (replace(queued, pipelined_pes=True, banks=4), thin, (0.2, 0.8), 0),
        (replace(queued, pipelined_pes=True, weight_fifo_vectors=20, bank_queue=1), thin,
         (0.2, 0.9), 0),
        (replace(queued, pipelined_pes=True, weight_lanes=16, ifmap_lanes=8), thin, (0.9, 0.9), 0),
        (Scnn(grid_rows=2, grid_columns=1, filter_group=2, weight_lanes=16, ifmap_lanes=8,
              weight_fifo_vectors=2, index_bits=2, pipelined_pes=True), conv, (0.4, 0.8), 1),
        (Scnn(grid_rows=3, grid_columns=2, weight_lanes=3, ifmap_lanes=2, banks=8,
              bank_hash="dnnsim", barrier="channel", weight_fifo_vectors=13,
              bank_queue=1), strided,
         (0.3, 0.5), 2),
        (Scnn(grid_rows=2, grid_columns=3, filter_group=4, barrier="channel"), strided,
         (0.2, 0.9), 5),
        (Scnn(grid_rows=2, grid_columns=2, filter_group=2, bank_hash="dnnsim", bank_queue=1), conv,
         (0.9, 0.9), 0),
        (Scnn(grid_rows=2, grid_columns=2, filter_group=1, banks=1, bank_entries=64,
              bank_queue=3), wide,
         (0.1, 1.0), 0),
        (Scnn(grid_rows=1, grid_columns=1, filter_group=2), wide, (0.3, 1.0), 0),
        (Scnn(grid_rows=2, grid_columns=1, filter_group=2, weight_lanes=16, ifmap_lanes=8,
              weight_fifo_vectors=2, index_bits=2), conv, (0.4, 0.8), 5),
    ]  # fmt: skip
    return [
        Case(design=design, layer=layer, operands=operands_of(layer, density, seed), seed=seed,
             gap=gap)
        for design, layer, density, gap in chosen
        for seed in (1, 2)
    ]  # fmt: skip


def _known() -> list[tuple[Case, Any]]:
    return [(case, answers(case)) for case in _few_cases()]


@pytest.fixture(scope="module")
def few() -> list[tuple[Case, Any]]:
    found = _known()
    assert all(known is not None for _, known in found)
    return found


def _with_fault(folder: Path, faults: dict[ModuleType, Fault]) -> ModuleType:
    """`timing` with a fault put into it or into what it calls, its kernels run by Python."""
    parts = {
        module: faulty_module(
            module, folder, *given, *([faults[module]] if module in faults else [])
        )
        for module, given in _PARTS.items()
    }
    for mutated in parts.values():
        for name, value in list(vars(mutated).items()):
            if value is kernels:
                setattr(mutated, name, parts[kernels])
            for module, part in parts.items():
                own = getattr(value, "__module__", None) == module.__name__
                if own and getattr(module, name, None) is value:
                    setattr(mutated, name, getattr(part, name))
    return parts[timing]


def _caught(module: ModuleType, few: list[tuple[Case, Any]]) -> bool:
    try:
        return not all(agrees(case, known, module) for case, known in few)
    except IndexError:
        return True


def test_the_untouched_model_passes(few: list[tuple[Case, Any]], tmp_path: Path) -> None:
    assert not _caught(_with_fault(tmp_path, {}), few)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_caught(name: str, few: list[tuple[Case, Any]], tmp_path: Path) -> None:
    module, said, instead = FAULTS[name]
    assert _caught(_with_fault(tmp_path, {module: (said, instead)}), few)


@pytest.mark.parametrize("name", MAPPING_FAULTS)
def test_faults_of_the_mapping_are_caught(
    name: str, few: list[tuple[Case, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    method, instead = MAPPING_FAULTS[name]
    monkeypatch.setattr(Mapping, method, instead)
    assert _caught(timing, few)
