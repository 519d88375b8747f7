"""When every word crosses, and what the sums are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from archsim.machine.layer_machine import LayerAnswer, LayerMachine
from archsim.numbers import IntArray, wrap
from own_parts.dot_unit.design import DotUnit
from workloads.reference import accumulate
from workloads.vectors import dot_vectors


class DotAnswer(LayerAnswer):
    """A layer on a dot-product unit."""

    design: DotUnit
    does = "sum"

    @property
    def parts(self) -> int:
        """Sums that a dot product is cut into."""
        return self.options.get("parts", 1)

    @property
    def sums(self) -> int:
        """Those that leave."""
        return self.layer.ofmap_elements * self.parts

    @property
    def pairs(self) -> int:
        """Pairs of words in each sum; the last ones are filled with zeros."""
        depth = self.layer.macs // self.layer.ofmap_elements
        return -(-depth // (self.design.lanes * self.parts))

    @property
    def counts(self) -> Mapping[str, int]:
        pairs = self.sums * self.pairs
        return {"command": 1, "ifmap": pairs, "weight": pairs, "ofmap": self.sums}

    @property
    def cycles(self) -> int:
        """The command, a pair a cycle, and the last sum; with gaps as long as it takes."""
        return int(self.crossed["ofmap"][-1]) + 1 if self.gaps else self.counts["ifmap"] + 2

    @property
    def where(self) -> Mapping[str, int]:
        return {"control": 1, "computing": self.counts["ifmap"], "draining": 1}

    @property
    def actions(self) -> Mapping[str, int]:
        return {"pair": self.counts["ifmap"], "sum": self.sums}

    @cached_property
    def crossed(self) -> Mapping[str, IntArray]:
        """See the contract."""
        command, out_waits = int(self.waits("command")[0]), self.waits("ofmap").tolist()
        both = np.maximum(self.waits("ifmap"), self.waits("weight")).tolist()
        pair, left, taken, out = -1, -1, list[int](), list[int]()
        for number, gap in enumerate(both):
            pair = max(pair + 1 + gap, command + 1)
            if number % self.pairs == self.pairs - 1:
                pair = max(pair, left)
                left = max(pair + 1, left + 1 + out_waits[len(out)])
                out.append(left)
            taken.append(pair)
        pairs = np.array(taken, np.int64)
        first = np.array([command], np.int64)
        return {"command": first, "ifmap": pairs, "weight": pairs, "ofmap": np.array(out, np.int64)}

    @cached_property
    def _vectors(self) -> list[IntArray]:
        """The ifmap's and the weights' values [sums, pairs · lanes]."""
        width = self.parts * self.pairs * self.design.lanes
        found = dot_vectors(self.layer, self.taken.ifmap, self.taken.weight)
        fill = ((0, 0), (0, width - found[0].shape[1]))
        return [np.pad(one, fill).reshape(self.sums, -1) for one in found]

    @cached_property
    def words(self) -> Mapping[str, IntArray]:
        ifmap, weight = (one.reshape(-1, self.design.lanes) for one in self._vectors)
        command = np.array([[self.sums, self.pairs]], np.int64)
        return {"command": command, "ifmap": ifmap, "weight": weight, "ofmap": self._sums[:, None]}

    @cached_property
    def _sums(self) -> IntArray:
        ifmap, weight = self._vectors
        return wrap(np.einsum("sd,sd->s", ifmap, weight), self.design.accumulator_bits)

    @property
    def ofmap(self) -> IntArray:
        """Parts are added without wrapping."""
        whole = accumulate(self.layer, self.taken.ifmap, self.taken.weight)
        if self.parts == 1:
            return wrap(whole, self.design.accumulator_bits)
        return self._sums.reshape(*whole.shape, self.parts).sum(axis=-1)


class DotModel(LayerMachine):
    """The model of a dot-product unit."""

    answers = DotAnswer
