"""A pass of a sparse core, stepped cycle by cycle as docs/contracts/scnn.md tells it.

Nothing here is shared with the fast model but the design and the problem: lists are made value by
value, products stand in queues, one by one, sums lie in dictionaries, halos move sum by sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scnn_copies import Copies
from scnn_lists import Pe, Vector, Window, ceil, make_list, power, side_of, words
from scnn_outputs import Outputs
from scnn_registers import BARRIER, DECODED, LOADED, WRITTEN_LATER, Registers

from archsim.layer.problem import Problem
from archsim.machines.scnn.design import Scnn

Array = npt.NDArray[Any]
LATENCY = 3
"""From the cycle after a pair's last to the one in which its sums can be read, with no queue."""

WRITTEN = 3
"""From the end of the last drain to the one in which the last list can be read."""

SETTLED = 4
"""More, and behind the last ifmap vector, where values are compressed."""

FIGURES = ("busy", "wait", "skip", "barrier", "drain", "conflict", "pairs", "products", "outside",
           "ifmap_reads", "halo_sums", "copy_sums", "window_reads")  # fmt: skip

EVENTS = ("fifo_writes", "outputs", "zeroed", "cleared")
"""Counted in all PEs together."""


class Oracle(Copies, Outputs, Registers):
    """Steps one image and conv group: ifmap [H, W, C], weight [K, R, S, C], bias [K].

    gaps: by port ("ifmap", "weight", "ofmap"), idle cycles before each vector; none if left out.
    windows: of rows and columns, where the pass is pooled.
    """

    def __init__(
        self,
        design: Scnn,
        problem: Problem,
        operands: tuple[Array, Array, Array],
        scaling: tuple[int, int],
        gaps: dict[str, list[int]] | None = None,
        windows: tuple[Window, Window] | None = None,
    ) -> None:
        self.design, self.problem, self.scaling = design, problem, scaling
        self.ifmap, self.weight, self.bias = operands
        self.gaps, self.pooled = gaps or {}, windows is not None
        row_window, column_window = windows or (None, None)
        self.rows = side_of(
            (problem.height, problem.out_height), problem.kernel_height, problem.stride_height,
            problem.pad_top, design.grid_rows, row_window,
        )  # fmt: skip
        self.columns = side_of(
            (problem.width, problem.out_width), problem.kernel_width, problem.stride_width,
            problem.pad_left, design.grid_columns, column_window,
        )  # fmt: skip
        self.phases = [
            (fy, fx)
            for fy in range(problem.stride_height)
            for fx in range(problem.stride_width)
            if fy < problem.kernel_height and fx < problem.kernel_width
        ]
        self.pes = [Pe(i, j) for i in range(self.rows.pes) for j in range(self.columns.pes)]
        self.kc = self.choose_group()
        self.kp = power(self.kc)
        for pe in self.pes:
            for c in range(problem.channels):
                for phase in self.phases:
                    pe.lists[c, phase] = self.activations(pe, c, phase)
        self.groups = [
            list(range(k, min(k + self.kc, problem.filters)))
            for k in range(0, problem.filters, self.kc)
        ]
        self.blocks = [
            (g, c, phase)
            for g in range(len(self.groups))
            for c in range(problem.channels)
            for phase in self.phases
        ]
        self.streams = [self.weights(self.groups[g], c, phase, self.kp)
                        for g, c, phase in self.blocks]  # fmt: skip

    def choose_group(self) -> int:
        """The most filters that fit accumulators and FIFO; 0 if one does not."""
        problem, design = self.problem, self.design
        sums = self.rows.longest() * self.columns.longest()
        room = design.banks * design.bank_entries
        most = design.filter_group
        if design.group_rule == "dnnsim":  # the outputs of a PE, as if all the grid had some
            own = ceil(problem.out_height, design.grid_rows)
            most = room // (own * ceil(problem.out_width, design.grid_columns))
        for kc in range(min(most, problem.filters), 0, -1):
            lists = [
                self.weights(list(range(k, min(k + kc, problem.filters))), c, phase, power(kc))
                for k in range(0, problem.filters, kc)
                for c in range(problem.channels)
                for phase in self.phases
            ]
            longest = max(len(one) for one in lists)
            fits = design.group_rule == "dnnsim" or power(kc) * sums <= room
            if fits and longest <= design.weight_fifo_vectors:
                return kc
        return 0

    def activations(self, pe: Pe, c: int, phase: tuple[int, int]) -> list[Vector]:
        """Places are (y'', x''): the output at tap (0, 0) of the phase."""
        problem, cells = self.problem, []
        sh, sw = problem.stride_height, problem.stride_width
        ys = [y for y in self.rows.inputs(pe.row) if (y + problem.pad_top) % sh == phase[0]]
        xs = [x for x in self.columns.inputs(pe.column) if (x + problem.pad_left) % sw == phase[1]]
        pitch = power(ceil(self.columns.tile, sw))
        for y in ys:
            for x in xs:
                place = (y + problem.pad_top) // sh, (x + problem.pad_left) // sw
                position = ys.index(y) * pitch + xs.index(x)
                cells.append((position, int(self.ifmap[y, x, c]), place))
        dense = self.design.sparsity == "weights"
        return make_list(cells, self.design.ifmap_lanes, self.design.index_bits, dense)

    def weights(self, filters: list[int], c: int, phase: tuple[int, int], kp: int) -> list[Vector]:
        """Places are (r', s', k within the group)."""
        problem, cells = self.problem, []
        rs = range(phase[0], problem.kernel_height, problem.stride_height)
        ss = range(phase[1], problem.kernel_width, problem.stride_width)
        for row, r in enumerate(rs):
            for column, s in enumerate(ss):
                for k, filter_ in enumerate(filters):
                    position = (row * power(len(ss)) + column) * kp + k
                    value = int(self.weight[filter_, r, s, c])
                    cells.append((position, value, (row, column, k)))
        dense = self.design.sparsity == "activations"
        return make_list(cells, self.design.weight_lanes, self.design.index_bits, dense)

    def bank(self, pe: Pe, p: int, q: int, k: int) -> int:
        y = p - self.rows.region(pe.row)[0]
        x = q - self.columns.region(pe.column)[0]
        if self.design.bank_hash == "linear":
            return ((y * self.columns.longest() + x) * self.kp + k) % self.design.banks
        high = ((k & 4) << 2) ^ ((x & 2) << 3) ^ ((y & 2) << 3)
        return (high + ((x & 1) << 3) + ((y & 1) << 2) + (k & 3)) % self.design.banks

    def run(self) -> dict[str, Any]:
        """All figures, by the names of the fast model's."""
        loads = [v for pe in self.pes for lists in pe.lists.values() for v in lists]
        self.cycle, self.answers = 0, {name: [] for name in
            ("starts", "ends", "drain_starts", "drained", "pe_ends", "weight_cycles")}  # fmt: skip
        self.ifmap_cycles = list(self.port("ifmap", 0 if self.ifmap_kept else len(loads), 1))
        self.settling = SETTLED if self.design.activation_memory.stepped else 0
        behind = self.settling or (LOADED if self.design.pipelined_pes else 0)
        loaded = 2 if self.ifmap_kept else self.ifmap_cycles[-1] + 1 + behind
        self.group, self.started = 0, [loaded]
        self.vectors = [v for stream in self.streams for v in stream]
        self.done_at: list[int | None] = [None] * len(self.pes)
        self.draining: Iterator[None] | None = None
        self.finished: list[int] = []
        while len(self.finished) < len(self.groups):
            self.step()
            self.cycle += 1
        return self.report(words(loads))

    def port(self, name: str, number: int, earliest: int) -> Iterator[int]:
        """Crossings of a port that nothing holds up."""
        last = -1
        for n in range(number):
            last = max(earliest, last + self.interval(name, n))
            yield last

    def interval(self, name: str, n: int) -> int:
        gaps = self.gaps.get(name)
        return 1 if gaps is None else 1 + gaps[n]

    def step(self) -> None:
        self.control()
        self.broadcast()
        self.slowest = min(pe.block for pe in self.pes) // len(self.phases)
        for number, pe in enumerate(self.pes):
            pe.held = len(pe.fifo)  # what is given back now is seen a cycle later
            self.step_pe(number, pe)
            pe.add_products()
        self.drain()

    def control(self) -> None:
        """At the beginning of a cycle: is the group over, may the next one start?"""
        ends = self.answers["ends"]
        over = len(ends) == self.group and all(done is not None for done in self.done_at)
        if over and self.cycle >= self.started[self.group]:
            ends.append(self.cycle)
            self.answers["pe_ends"].append(list(self.done_at))
        last = self.group == len(self.groups) - 1
        drained = self.group == 0 or len(self.finished) >= self.group
        known = BARRIER if self.design.pipelined_pes else 0
        over = len(ends) > self.group and self.cycle >= ends[-1] + known
        if over and drained and not last:
            self.started.append(self.cycle + 1)
            self.group += 1
            self.done_at = [None] * len(self.pes)

    def broadcast(self) -> None:
        crossed = self.answers["weight_cycles"]
        n = len(crossed)
        if n == len(self.vectors) or self.cycle == 0:
            return
        if self.cycle < (crossed[-1] if n else -1) + self.interval("weight", n):
            return
        held = [pe.held if self.design.pipelined_pes else len(pe.fifo) for pe in self.pes]
        if max(held) < self.design.weight_fifo_vectors:
            crossed.append(self.cycle)
            for pe in self.pes:
                pe.fifo.append((self.vectors[n], self.cycle))
                pe.figures["fifo_writes"] += 1

    def step_pe(self, number: int, pe: Pe) -> None:
        if self.cycle < self.started[0]:
            return
        if self.done_at[number] is not None or self.cycle < self.started[self.group]:
            over = len(self.answers["ends"]) == len(self.groups)
            pe.figures["drain" if over else "barrier"] += 1
            return
        over = self.step_registers(pe) if self.design.pipelined_pes else self.step_operands(pe)
        if over:
            self.done_at[number] = self.cycle + 1

    def step_operands(self, pe: Pe) -> bool:
        """A cycle of the operand stage: whether the PE's part of the group is over with it."""
        if pe.waiting is None:
            why = self.start_pair(pe)
            if why:
                pe.figures[why] += 1
                return why == "skip" and self.finish_block(pe)
        pe.figures["busy"] += 1
        self.take_products(pe)
        if pe.waiting:
            return False
        pe.waiting = None
        return self.finish_pair(pe)

    def start_pair(self, pe: Pe) -> str:
        """Begin the next pair, or say why not."""
        _, c, phase = self.blocks[pe.block]
        ahead = pe.block // len(self.phases) > self.slowest
        if self.design.barrier == "channel" and ahead:
            return "barrier"
        late = DECODED if self.design.pipelined_pes else 0
        there = [vector for vector, crossed in pe.fifo if crossed + late < self.cycle]
        number = len(self.streams[pe.block])
        lists = pe.lists[c, phase]
        empty = all(place is None for vector in lists for _, _, place in vector)
        if empty:
            if len(there) < number:
                return "wait"
            del pe.fifo[:number]
            pe.figures["ifmap_reads"] += 1
            return "skip"
        at = 0 if pe.v == len(lists) - 1 else pe.j
        if len(there) <= at:
            return "wait"
        pe.waiting = self.products(pe, lists[pe.v], there[at])
        pe.figures["pairs"] += 1
        pe.figures["ifmap_reads"] += pe.j == 0
        return ""

    def products(self, pe: Pe, activations: Vector, weights: Vector) -> list[tuple[Any, int]]:
        """(where, value), activation lanes outside."""
        found: list[tuple[Any, int]] = []
        for value, _, place in activations:
            for weight, _, tap in weights:
                if value and weight:
                    p, q = place[0] - tap[0], place[1] - tap[1]
                    if 0 <= p < self.rows.outputs and 0 <= q < self.columns.outputs:
                        found.append(((p, q, tap[2]), value * weight))
                        pe.figures["products"] += 1
                    else:
                        pe.figures["outside"] += 1
        return found

    def take_products(self, pe: Pe) -> None:
        """Every bank's queue takes the first products that are for it, while it has places."""
        left: list[tuple[Any, int]] = []
        for where, value in pe.waiting or []:
            queue = pe.queues.setdefault(self.bank(pe, *where), [])
            if len(queue) == self.design.bank_queue:
                left.append((where, value))
            else:
                queue.append((self.group, where, value))
        pe.figures["conflict"] += bool(left)
        pe.waiting = left

    def finish_pair(self, pe: Pe) -> bool:
        """Go on behind a pair: whether it was the PE's last of the group."""
        _, c, phase = self.blocks[pe.block]
        last = pe.v == len(pe.lists[c, phase]) - 1
        if last:
            del pe.fifo[0]
        pe.j += 1
        if pe.j == len(self.streams[pe.block]):
            pe.j = 0
            pe.v += 1
            if last:
                return self.finish_block(pe)
        return False

    def finish_block(self, pe: Pe) -> bool:
        """Go on behind a block: whether it was the group's last."""
        pe.v = pe.j = 0
        pe.block += 1
        return pe.block % (len(self.blocks) // len(self.groups)) == 0

    def drain(self) -> None:
        """One cycle of halo or output of the first group that is not drained."""
        group = len(self.finished)
        ends, queued = self.answers["ends"], self.design.bank_queue - 1
        over = group < len(ends) and self.cycle >= ends[group] + LATENCY + queued
        if self.draining is None and over:
            assert not any(pe.queued(group) for pe in self.pes), "sums are read too early"
            self.answers["drain_starts"].append(self.cycle)
            self.draining = self.drain_cycles(group)
        if self.draining is not None:
            next(self.draining)
            if self.left == 0:
                self.draining = None
                self.finished.append(self.cycle + 1)

    def drain_cycles(self, group: int) -> Iterator[None]:
        """Yields once a cycle; `left` is 0 in the last."""
        self.left = -1
        filters = range(len(self.groups[group]))
        rows, columns = self.rows, self.columns
        for by in (-1, 1):
            for _ in range(len(filters) * rows.longest() * columns.most_away(by)):
                yield
                yield
            self.send(group, 0, by)
        for by in (-1, 1):
            for _ in range(len(filters) * rows.most_away(by) * columns.most_owned()):
                yield
                yield
            self.send(group, by, 0)
        if self.pooled:
            yield from self.copy_cycles(group)
        for k in filters:
            for n in range(rows.give * self.pitch(columns.give)):
                for _ in range(rows.taps * columns.taps - 1):
                    yield
                self.give_out(group, k, *divmod(n, self.pitch(columns.give)))
                yield
            self.left = 0 if k == filters[-1] and not self.pooled else -1
            yield
        if self.pooled:
            for pe in self.pes:
                pe.sums[group % 2].clear()
                pe.figures["cleared"] += self.design.banks * self.design.bank_entries
            for entry in range(self.design.bank_entries):
                self.left = self.design.bank_entries - 1 - entry
                yield

    def send(self, group: int, down: int, right: int) -> None:
        """Sums that a neighbour owns, to it; the neighbour's row or column of PEs."""
        moved: list[tuple[Counter[Any], Any, int]] = []
        for pe in self.pes:
            rows, columns = self.rows.region(pe.row), self.columns.region(pe.column)
            if right:
                columns = self.columns.away(pe.column, right)
            else:
                rows, columns = self.rows.away(pe.row, down), self.columns.owned(pe.column)
            for p in rows:
                for q in columns:
                    other = (pe.row + down) * self.columns.pes + pe.column + right
                    for k in range(len(self.groups[group])):
                        value = pe.sums[group % 2].pop((p, q, k), 0)
                        moved.append((self.pes[other].sums[group % 2], (p, q, k), value))
                        pe.figures["halo_sums"] += 1
        for sums, where, value in moved:
            sums[where] += value

    def report(self, loads: list[Any]) -> dict[str, Any]:
        design, problem = self.design, self.problem
        sizes = self.rows.windows, self.columns.windows, problem.filters
        ofmap = np.zeros(sizes, np.int64)
        stored = [vector for one in self.output_lists() for vector in one]
        for pe in self.pes:
            rows, columns = self.rows.given(pe.row), self.columns.given(pe.column)
            for k in range(problem.filters) if rows and columns else ():
                ofmap[np.ix_(rows, columns, [k])] = np.reshape(
                    pe.outputs[k], (len(rows), len(columns), 1)
                )
            assert not any(any(half.values()) for half in pe.sums), "sums are left"
        bits = design.operand_bits + design.index_bits
        later = WRITTEN_LATER if design.pipelined_pes else 0
        first = self.finished[-1] + WRITTEN + later + self.settling
        left = list(self.port("ofmap", 0 if self.keep_ofmap else len(stored), first))
        return {
            **self.answers,
            "starts": self.started,
            "drained": self.finished,
            "ifmap_cycles": self.ifmap_cycles,
            "ofmap_cycles": left,
            "cycles": first if self.keep_ofmap else left[-1] + 1,
            "compute_cycles": self.finished[-1] - self.started[0],
            "weight_bits": len(self.vectors) * (design.weight_lanes * bits + 1),
            "ifmap_bits": len(self.ifmap_cycles) * (design.ifmap_lanes * bits + 1),
            "ofmap_bits": len(left) * (design.ifmap_lanes * bits + 1),
            "pes": {name: [pe.figures[name] for pe in self.pes] for name in FIGURES},
            "events": {name: sum(pe.figures[name] for pe in self.pes) for name in EVENTS},
            "ofmap": ofmap,
            "ifmap_words": loads,
            "weight_words": words(self.vectors),
            "ofmap_words": words(stored),
            "group_size": self.kc,
        }


__all__ = ["FIGURES", "Oracle", "Vector", "make_list"]
