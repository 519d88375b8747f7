"""What the model says of every port, as a VCD wave that lies beside the RTL's.

A file has one scope, `model`, with for each port of the design

<port>__payload    the word, named as in the emitted RTL; it changes only when a word crosses
<port>__transfer   1 in the cycles in which a word crosses, where the RTL has valid and ready
<port>.lane_<n>    the lanes of the word, or its fields by their names (wires: show as signed)

and `layer` and `cycle`, of the last crossing.  The model knows when words cross, not how long one
was offered before.

Time is that of the design's clock (`archsim.wave_clock`), as in the wave of the cocotb bench: cycle
0 begins with the rising edge after two and a half periods, behind the reset.  So a word crosses at
the same time in both waves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from operator import itemgetter
from types import TracebackType
from typing import Any, TextIO

import numpy as np

from archsim.machine.design import Design
from archsim.machine.registry import design_name
from archsim.ports import Port, Transfers
from archsim.version import VERSION
from archsim.wave_clock import WaveClock

SCOPE = "model"
CYCLE_BITS = 48

Change = tuple[int, int, int | None, list[int]]
"""Cycle, number of the port, the word that crosses or None when none does any more, its lanes."""


class _PortWave:
    """The variables of one port."""

    def __init__(self, writer: Any, port: Port, *, lanes: bool) -> None:
        def wire(name: str, bits: int, init: int | str = "x") -> Any:
            *scope, last = (SCOPE, *name.split("."))
            return writer.register_var(scope, last, "wire", size=bits, init=init)

        self.port = port
        self.transfer = wire(f"{port.name}__transfer", 1, 0)
        self.payload = wire(f"{port.name}__payload", port.bits)
        names = port.lane_names or [f"lane_{lane}" for lane in range(port.lanes)]
        named = zip(names, port.lane_bits, strict=True) if lanes else ()
        self.lanes = [wire(f"{port.name}.{name}", bits) for name, bits in named]

    def changes(self, number: int, transfers: Transfers, start: int) -> Iterator[Change]:
        """What happens at the port, in order of time; `start` is the layer's first cycle."""
        words = self.port.pack(transfers.payload)
        ends = np.diff(transfers.cycle, append=-1) != 1
        for word, lanes, cycle, last in zip(
            words, transfers.payload, (transfers.cycle + start).tolist(), ends, strict=True
        ):
            values: list[int] = lanes.tolist() if self.lanes else []
            yield cycle, number, int.from_bytes(word.tobytes(), "little"), values
            if last:
                yield cycle + 1, number, None, []


class Waves:
    """A VCD file of a design's ports, written layer by layer.  A context manager.

    lanes: whether each lane is a variable of its own beside the whole word; files are about
    half as large again with them.  Raises `InputError` for a clock that no timescale has.
    """

    def __init__(self, design: Design, file: TextIO, *, lanes: bool = True) -> None:
        from vcd.writer import VCDWriter

        comment = f"the model of {design_name(design)}, archsim {VERSION}"
        clock = WaveClock(clock_hz=design.clock_hz)
        self._time = clock.cycle
        writer: Any = VCDWriter(
            file, timescale=clock.timescale, date="", comment=comment, check_values=False
        )
        self._writer = writer
        self._layer = writer.register_var(SCOPE, "layer", "string", init="")
        self._cycle = writer.register_var(SCOPE, "cycle", "wire", size=CYCLE_BITS, init=0)
        ports = design.machine_model().ports
        self._ports = [_PortWave(writer, port, lanes=lanes) for port in ports]
        self._start = 0

    def add_layer(self, name: str, transfers: Mapping[str, Transfers], cycles: int) -> None:
        """Write what crosses each port in a layer of so many cycles; it follows the one before."""
        change = self._writer.change
        change(self._layer, self._time(self._start), name)
        streams = [
            wave.changes(number, transfers[wave.port.name], self._start)
            for number, wave in enumerate(self._ports)
        ]
        for cycle, number, word, lanes in merge(*streams, key=itemgetter(0)):
            wave, time = self._ports[number], self._time(cycle)
            if word is None:
                change(wave.transfer, time, 0)
                continue
            change(self._cycle, time, cycle)
            change(wave.transfer, time, 1)
            change(wave.payload, time, word)
            for variable, value in zip(wave.lanes, lanes, strict=True):
                change(variable, time, value)
        self._start += cycles

    def close(self) -> None:
        """End the wave with the last layer's last cycle; the file stays open."""
        self._writer.close(self._time(self._start))

    def __enter__(self) -> Waves:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:  # a wave that was broken off in the middle of a layer has no end
            self.close()
