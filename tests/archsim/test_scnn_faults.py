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

from archsim.machines.scnn import addresses, kernels, timing
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
        "now = max(start, latest - plane[2]) + 1",
        "now = max(start, start + (latest - start) // 2 - plane[2]) + 1",
    ),
    "a pair without products in no cycle": (
        kernels,
        "now = max(start, latest - plane[2]) + 1",
        "now = max(start, latest - plane[2] + 1)",
    ),
    "a queue of one place more": (kernels, "latest - plane[2])", "latest - plane[2] - 1)"),
    "a queue of one place less": (kernels, "latest - plane[2])", "latest - plane[2] + 1)"),
    "no queue": (kernels, "latest - plane[2])", "latest - 1)"),
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
    "queues empty at each group": (
        timing,
        "self._ends[:] = start",
        "self._ends[:], self._state[1][:] = start, 0",
    ),
    "queues that stand while the PE waits": (
        kernels,
        "            waited += start - now\n",
        "            waited += start - now\n            idle += start - now\n",
    ),
    "one queue for all PEs": (kernels, "idle[pe])", "idle[0])"),
    "the drain before the queues are empty": (timing, "design.pipeline_latency_cycles", "3"),
    "products that are not sent take a cycle": (kernels, "sent = int(bank < banks)", "sent = 1"),
    "products above or below the plane": (addresses, "outer(rows != NOWHERE,", "outer(rows < 99,"),
    "products beside the plane": (addresses, "columns != NOWHERE)", "columns < 99)"),
    "products before the plane": (
        addresses,
        "p - region.start if p in inside",
        "max(p - region.start, 0) if p < axis.outputs",
    ),
    "products behind the plane": (
        addresses,
        "p - region.start if p in inside",
        "min(p, axis.outputs - 1) - region.start if p >= 0",
    ),
    "a table of another PE": (addresses, "numbers.append(found[key])", "numbers.append(0)"),
    "places left at the first activations": (
        kernels,
        "            ends[w - begin] = now",
        "            ends[w - begin] = now if a == own[0] else ends[w - begin]",
    ),
    "a weight used as it crosses": (kernels, "crossings[w] + 1)", "crossings[w])"),
    "gaps of the port ignored": (
        kernels,
        "scalars[CROSSED] + intervals[w]",
        "scalars[CROSSED] + 1",
    ),
    "places written a cycle early": (
        kernels,
        "free[place] = max(free[place], ends[w])",
        "free[place] = max(free[place], ends[w] - 1)",
    ),
    "places free in the last PE only": (
        kernels,
        "free[place] = max(free[place], ends[w])",
        "free[place] = ends[w]",
    ),
    "the FIFO ignored": (kernels, "intervals[w], free[place])", "intervals[w], 1)"),
    "a skip before its last vector": (kernels, "crossings[end - 1] + 1", "crossings[begin] + 1"),
    "places of a skipped block free a cycle early": (
        kernels,
        "ends[: end - begin] = start + 1",
        "ends[: end - begin] = start",
    ),
    "a skip in no cycle": (kernels, "return start + 1, start - now", "return start, start - now"),
    "a barrier of channels ignored": (kernels, "if inside and barrier_blocks", "if 0"),
    "a barrier of blocks": (kernels, "% barrier_blocks == 0", ">= 0"),
    "a FIFO of one place more": (
        timing,
        "np.full(design.weight_fifo_vectors,",
        "np.full(design.weight_fifo_vectors + 1,",
    ),
    "weights before the command": (timing, "1 + service.latency_cycles", "0"),
    "a barrier of groups ignored": (
        timing,
        "start = max(int(ends[group]), free) + 1",
        "start = max(int(pe_ends[group].min()), free) + 1",
    ),
    "accumulators not waited for": (
        timing,
        "start = max(int(ends[group]), free) + 1",
        "start = int(ends[group]) + 1",
    ),
    "a group that starts a cycle early": (
        timing,
        "start = max(int(ends[group]), free) + 1",
        "start = max(int(ends[group]), free)",
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
    "skipped blocks counted as pairs": (timing, "* ~self._empty)", ")"),
    "addresses of another pitch": (addresses, "None] + y * pitch", "None] + y * (pitch + 1)"),
    "weights of another pitch": (addresses, "* mapping.columns.span_extent + s", "* 1 + s"),
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
        weight_fifo_vectors=13, filter_group=2, bank_queue=2,
    )  # fmt: skip
    queued = replace(tight, banks=1, bank_entries=256, weight_fifo_vectors=2, bank_queue=4)
    chosen = [
        (tight, conv, (0.6, 0.6), 3),
        (replace(tight, banks=1, bank_entries=256, bank_queue=5), conv, (0.5, 0.4), 9),
        (queued, thin, (0.7, 0.8), 9),
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
    plain = (
        ("from archsim.kernels import inlined, kernel", "inlined = lambda function: function"),
        ("@kernel(", "@(lambda *_: inlined)("),
    )
    parts = {
        module: faulty_module(
            module, folder, *given, *([faults[module]] if module in faults else [])
        )
        for module, given in ((kernels, plain), (addresses, ()), (timing, ()))
    }
    mutated = parts[timing]
    setattr(mutated, "kernels", parts[kernels])  # noqa: B010
    for name in ("activation_operand", "weight_operand", "bank_table"):
        setattr(mutated, name, getattr(parts[addresses], name))
    return mutated


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
