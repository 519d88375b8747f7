"""The dispatcher: one command stream in, a queue for each unit of the core."""

from collections.abc import Mapping

from amaranth.hdl import Module, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.commands import FOLD_FIELDS, OUTPUT_FIELDS, PIXEL_FIELDS, command_layout
from rtl.core.credits import Credits
from rtl.core.gathering_loader import GATHER_LAYOUT
from rtl.core.queue import HeadedQueue, Queue
from rtl.hierarchy import place

LOADS = {"ifmap": "load_ifmap", "weight": "load_weight", "bias": "has_bias"}
"""The flag of a command that sends it to each loader."""


class Dispatcher(wiring.Component):
    """Every command goes to the units that it concerns; a unit sees it one cycle later.

    Throughput: one command a cycle.  Back-pressure: command.ready is low while any queue is full.

    Members
    -------
    command: the core's command stream; ifmap, weight, bias: to the loaders; stream, load: to the
    sequencers (`load` only where `decoupled`); output: to the output stage.  gathers: the ifmap's
    loader is a `GatheringLoader`; ahead: whether all queues have room is a register, and so is the
    first command of each, in the same cycles.
    """

    command: stream.Interface

    def __init__(
        self, *, queue_depth: int, decoupled: bool, gathers: bool = False, ahead: bool = False
    ) -> None:
        self.queue_depth = queue_depth
        self.ahead = ahead
        self.decoupled = decoupled
        folds = command_layout(*FOLD_FIELDS, *PIXEL_FIELDS)
        self.layouts: dict[str, data.StructLayout] = {
            **{name: data.StructLayout({"words": 24}) for name in LOADS},
            "stream": folds,
            **({"load": folds} if decoupled else {}),
            "output": command_layout(*OUTPUT_FIELDS),
        }
        if gathers:
            self.layouts["ifmap"] = GATHER_LAYOUT
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(gathers=gathers))),
                **{name: Out(stream.Signature(shape)) for name, shape in self.layouts.items()},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        command = self.command.payload
        concerned: Mapping[str, ValueLike] = {
            **{name: command[flag] for name, flag in LOADS.items()},
            "stream": 1,
            "load": 1,
            "output": command.last_k,
        }
        ready = Value.cast(1)
        for name, layout in self.layouts.items():
            kind = HeadedQueue if self.ahead else Queue
            queue = place(m, f"{name}_queue", kind, width=layout.size, depth=self.queue_depth)
            entry = data.View(layout, queue.i.payload)
            for field in layout.members:
                source = f"{name}_words" if field == "words" else field
                m.d.comb += entry[field].eq(command[source])
            unit = getattr(self, name)
            m.d.comb += [
                queue.i.valid.eq(self.command.valid & self.command.ready & concerned[name]),
                unit.valid.eq(queue.o.valid),
                unit.payload.eq(queue.o.payload),
                queue.o.ready.eq(unit.ready),
            ]
            ready = ready & (self._room(m, name, queue) if self.ahead else queue.i.ready)
        if self.ahead:
            room = Signal(init=1, name="room")
            m.d.sync += room.eq(ready)
            ready = room
        m.d.comb += self.command.ready.eq(ready)
        return m

    def _room(self, m: Module, name: str, queue: Queue) -> Value:
        """Whether a queue has room in the next cycle, as it will say itself."""
        sizes = {"initial": self.queue_depth, "limit": self.queue_depth}
        room = place(m, f"{name}_room", Credits, **sizes, ahead=True)
        m.d.comb += [
            room.take.eq(queue.i.valid),  # never without room
            room.give.eq(queue.o.valid & queue.o.ready),
        ]
        return room.soon
