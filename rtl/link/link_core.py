"""A core behind a byte link: a host reads and writes registers and feeds ports by frames."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    DomainRenamer,
    Module,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from archsim.machine.design import Design
from archsim.ports import Port
from rtl.axi.axi_core import ADDRESS_BITS, AxiCore, data_bits, stream_name
from rtl.hierarchy import place
from rtl.link.frames import PAYLOAD, Operation, Status
from rtl.link.receiver import LENGTH_BITS, Receiver
from rtl.link.sender import Sender

__all__ = ["LinkCore", "input_streams", "word_bytes"]

QUEUE_BYTES = 1024
"""Of each port's queue, as far as whole words fill it; two words at least."""
RESET_CYCLES = 4
WRITE_BYTES = 6
"""Of an address and a register in a WRITE."""


def word_bytes(port: Port) -> int:
    """Bytes of a word as it crosses the link: whole ones."""
    return data_bits(port) // 8


def input_streams(design: Design) -> tuple[Port, ...]:
    """What SEND fills, by number: all inputs but the command, which is in registers."""
    ports = design.machine_model().ports
    return tuple(port for port in ports if port.direction == "i" and port.name != "command")


class LinkCore(wiring.Component):
    """The core of a design, with its registers (`rtl.axi.register_map`), behind two byte streams.

    Requests of `rtl.link.frames` arrive at rx, answers leave at tx.  A request of the number of the
    one before is not done again: its answer is given again.  Nothing that is asked for waits for
    the core: SEND takes the words for which its queue has room, RECEIVE gives those that are there.

    patience: cycles in a frame without a byte, after which it is given up.
    """

    rx: stream.Interface
    tx: stream.Interface

    def __init__(self, *, design: Design, patience: int = 1 << 18) -> None:
        self.design = design
        self.patience = patience
        self.inputs = input_streams(design)
        ports = design.machine_model().ports
        (self.output,) = (port for port in ports if port.name == "ofmap")
        members = {"rx": In(stream.Signature(8)), "tx": Out(stream.Signature(8))}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.core = ClockDomain(local=True)
        clearing = Signal(range(RESET_CYCLES + 1))
        self.clearing = clearing
        m.d.comb += ClockSignal("core").eq(ClockSignal())
        m.d.comb += ResetSignal("core").eq(ResetSignal() | (clearing != 0))
        self.core: Any = place(m, "core", AxiCore, design=self.design)
        m.d.comb += [
            self.core.aclk.eq(ClockSignal()),
            self.core.aresetn.eq(~(ResetSignal() | (clearing != 0))),
        ]
        self.queues = [self._queue(m, port) for port in self.inputs]
        self.results = self._queue(m, self.output)
        self.receiver: Any = Receiver(patience=self.patience)
        self.sender: Any = Sender()
        m.submodules.receiver = self.receiver
        m.submodules.sender = self.sender
        wiring.connect(m, wiring.flipped(self.rx), self.receiver.i)
        wiring.connect(m, self.sender.o, wiring.flipped(self.tx))
        self._control(m)
        return m

    def _queue(self, m: Module, port: Port) -> Any:
        """A port's words on their way, at the port itself."""
        depth = max(2, QUEUE_BYTES // word_bytes(port))
        queue = SyncFIFOBuffered(width=port.bits, depth=depth)
        m.submodules[f"queue_{port.name}"] = DomainRenamer("core")(queue)
        data, valid, ready = (
            getattr(self.core, f"{stream_name(port)}_t{what}")
            for what in ("data", "valid", "ready")
        )
        if port.direction == "i":
            m.d.comb += [data.eq(queue.r_data), valid.eq(queue.r_rdy)]
            m.d.comb += queue.r_en.eq(ready & valid)
        else:
            m.d.comb += [queue.w_data.eq(data), queue.w_en.eq(valid & ready)]
            m.d.comb += ready.eq(queue.w_rdy)
        return queue

    def _control(self, m: Module) -> None:
        """What is done with a request; each state of `wanted` bytes is followed by `then`."""
        widest = max(word_bytes(port) for port in (*self.inputs, self.output))
        self.held = Signal(8 * max(WRITE_BYTES, widest), name="held")
        self.wanted = Signal(range(len(self.held) // 8 + 1), name="wanted")
        self.at = Signal(LENGTH_BITS, name="at")
        self.length = Signal(LENGTH_BITS, name="answer_length")
        self.count = Signal(LENGTH_BITS, name="count")
        self.status = Signal(8, name="status")
        self.stream = Signal(8, name="stream")
        self.last, self.known = Signal(8, name="last"), Signal(name="known")
        self.short_write, self.short_word = Signal(name="short_write"), Signal(name="short_word")
        self.has_room, self.received_all = Signal(name="has_room"), Signal(name="received_all")
        received, sender = self.receiver, self.sender
        m.d.comb += [
            received.address.eq(self.at),
            sender.address.eq(self.length),
            sender.data.eq(self.held[:8]),
            sender.number.eq(self.last),
            sender.status.eq(self.status),
            sender.length.eq(self.length),
        ]
        with m.If(self.clearing != 0):
            m.d.sync += self.clearing.eq(self.clearing - 1)
        self._chosen_stream(m)
        with m.FSM():
            self._request(m)
            self._moves(m)
            self._looks(m)
            self._registers(m)
            self._words(m)
            with m.State("CLEAR"), m.If(self.clearing == 0):
                m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += sender.asked.eq(1)
                m.next = "GIVEN"
            with m.State("GIVEN"), m.If(~sender.busy):
                m.d.comb += received.released.eq(1)
                m.next = "IDLE"

    def _request(self, m: Module) -> None:
        received: Any = self.receiver
        again = self.known & (received.number == self.last) & (received.code != Operation.HELLO)
        with m.State("IDLE"), m.If(received.whole):
            with m.If(again):
                m.next = "ANSWER"
            with m.Else():
                m.d.sync += [
                    self.last.eq(received.number),
                    self.known.eq(1),
                    self.status.eq(Status.DONE),
                    self.at.eq(0),
                    self.length.eq(0),
                    self.count.eq(0),
                ]
                self._begin(m)

    def _begin(self, m: Module) -> None:
        """The first state of each operation."""
        length = self.receiver.length

        def fetch(wanted: int, then: str) -> Callable[[], None]:
            def begin() -> None:
                m.d.sync += self.wanted.eq(wanted)
                m.next = f"FETCH_{then}"

            return begin

        with m.Switch(self.receiver.code):
            for operation, right, begin in (
                (Operation.HELLO, length == 4, fetch(4, "GIVE")),
                (Operation.READ, ~length[0] & (length <= PAYLOAD // 2), None),
                (Operation.WRITE, None, None),
                (Operation.SEND, length != 0, fetch(1, "STREAM")),
                (Operation.RECEIVE, length == 2, fetch(2, "MOST")),
                (Operation.RESET, length == 0, None),
            ):
                with m.Case(operation):
                    if begin is not None:
                        begin()
                    elif operation is Operation.RESET:
                        m.d.sync += self.clearing.eq(RESET_CYCLES)
                        m.next = "CLEAR"
                    else:
                        m.next = f"{operation.name}_LOOK"
                    if right is not None:
                        with m.If(~right):
                            m.d.sync += [self.status.eq(Status.LENGTH), self.clearing.eq(0)]
                            m.next = "ANSWER"
            with m.Default():
                m.d.sync += self.status.eq(Status.UNKNOWN)
                m.next = "ANSWER"

    def _moves(self, m: Module) -> None:
        """Bytes of the request into `held`, the first one lowest; and from it into the answer."""
        for then in ("GIVE", "READ", "WRITE", "STREAM", "WORD", "MOST"):
            with m.State(f"FETCH_{then}"):  # the byte's address is there
                m.next = f"TAKE_{then}"
            with m.State(f"TAKE_{then}"):
                # bytes fill from above, and are moved down by those that the word has not
                m.d.sync += [
                    self.held.eq(Cat(self.held[8:], self.receiver.data)),
                    self.at.eq(self.at + 1),
                    self.wanted.eq(self.wanted - 1),
                ]
                m.next = f"FETCH_{then}"
                with m.If(self.wanted == 1):
                    m.next = f"DO_{then}"
        for then in ("ANSWER", "READ_NEXT", "RECEIVE_NEXT"):
            with m.State(f"STORE_{then}"):
                m.d.comb += self.sender.write.eq(1)
                m.d.sync += [
                    self.held.eq(self.held >> 8),
                    self.length.eq(self.length + 1),
                    self.wanted.eq(self.wanted - 1),
                ]
                with m.If(self.wanted == 1):
                    m.next = then

    def _looks(self, m: Module) -> None:
        """What is left is compared in one cycle and decided on in the next, of registers.

        A `…_NEXT` takes the comparisons of the cycle before it, so that no way goes from a queue
        through the choice of a stream to the bytes in `held`; where what is compared has just
        changed, a `…_LOOK` is between.  The request's next byte is fetched meanwhile.
        """
        left = Signal(LENGTH_BITS, name="bytes_left")
        m.d.comb += left.eq(self.receiver.length - self.at)
        m.d.sync += [
            self.received_all.eq(left == 0),
            self.short_write.eq(left < WRITE_BYTES),
            self.short_word.eq(left < self.width),
            self.has_room.eq(self.room),
        ]
        for name in ("READ", "WRITE", "SEND", "RECEIVE"):
            with m.State(f"{name}_LOOK"):
                m.next = f"{name}_NEXT"

    def _fetched(self, count: int) -> Value:
        """The last `count` bytes that were fetched."""
        return self.held[-8 * count :]

    def _store(self, m: Module, value: Any, count: int, then: str) -> None:
        m.d.sync += [self.held.eq(value), self.wanted.eq(count)]
        m.next = f"STORE_{then}"

    def _registers(self, m: Module) -> None:
        core = self.core
        address = Signal(ADDRESS_BITS, name="address")
        m.d.comb += [core.s_axi_awaddr.eq(address), core.s_axi_araddr.eq(address)]
        m.d.comb += [core.s_axi_wdata.eq(self._fetched(4)), core.s_axi_wstrb.eq(0xF)]
        self._reads(m, address)
        self._writes(m, address)

    def _reads(self, m: Module, address: Signal) -> None:
        core = self.core
        with m.State("DO_GIVE"):
            self._store(m, self._fetched(4), 4, "ANSWER")
        with m.State("READ_NEXT"):
            m.d.sync += self.wanted.eq(2)
            m.next = "TAKE_READ"
            with m.If(self.received_all):
                m.next = "ANSWER"
        with m.State("DO_READ"):
            m.d.sync += address.eq(self._fetched(2))
            m.next = "READ_ASK"
        with m.State("READ_ASK"):
            m.d.comb += core.s_axi_arvalid.eq(1)
            with m.If(core.s_axi_arready):
                m.next = "READ_WAIT"
        with m.State("READ_WAIT"):
            m.d.comb += core.s_axi_rready.eq(1)
            with m.If(core.s_axi_rvalid):
                self._store(m, core.s_axi_rdata, 4, "READ_NEXT")
                with m.If(core.s_axi_rresp[1]):
                    m.d.sync += self.status.eq(Status.REFUSED)
                    m.next = "ANSWER"

    def _writes(self, m: Module, address: Signal) -> None:
        core = self.core
        with m.State("WRITE_NEXT"):
            m.d.sync += self.wanted.eq(WRITE_BYTES)
            m.next = "TAKE_WRITE"
            with m.If(self.received_all):
                self._store(m, self.count, 2, "ANSWER")
            with m.Elif(self.short_write):
                self._store(m, self.count, 2, "ANSWER")
                m.d.sync += self.status.eq(Status.LENGTH)
        with m.State("DO_WRITE"):
            m.d.sync += address.eq(self._fetched(WRITE_BYTES))
            m.next = "WRITE_ADDRESS"
        with m.State("WRITE_ADDRESS"):
            m.d.comb += core.s_axi_awvalid.eq(1)
            with m.If(core.s_axi_awready):
                m.next = "WRITE_DATA"
        with m.State("WRITE_DATA"):
            m.d.comb += core.s_axi_wvalid.eq(1)
            with m.If(core.s_axi_wready):
                m.next = "WRITE_WAIT"
        with m.State("WRITE_WAIT"):
            m.d.comb += core.s_axi_bready.eq(1)
            with m.If(core.s_axi_bvalid):
                m.d.sync += self.count.eq(self.count + 1)
                m.next = "WRITE_NEXT"
                with m.If(core.s_axi_bresp[1]):
                    self._store(m, self.count, 2, "ANSWER")
                    m.d.sync += [self.status.eq(Status.REFUSED), self.count.eq(self.count)]

    def _chosen_stream(self, m: Module) -> None:
        """The queue of `stream`: its word's bytes, whether it has room, and the word for it."""
        self.room, self.width = Signal(name="room"), Signal(LENGTH_BITS, name="word_bytes")
        self.pushed = Signal(name="pushed")
        for port, queue in zip(self.inputs, self.queues, strict=True):
            m.d.comb += queue.w_data.eq(self._fetched(word_bytes(port)))
        with m.Switch(self.stream):
            for number, (port, queue) in enumerate(zip(self.inputs, self.queues, strict=True)):
                with m.Case(number):
                    m.d.comb += [self.room.eq(queue.w_rdy), self.width.eq(word_bytes(port))]
                    m.d.comb += queue.w_en.eq(self.pushed)

    def _words(self, m: Module) -> None:
        results = self.results
        with m.State("DO_STREAM"):
            m.d.sync += self.stream.eq(self._fetched(1))
            m.next = "SEND_LOOK"
            with m.If(self._fetched(1) >= len(self.inputs)):
                m.d.sync += self.status.eq(Status.UNKNOWN)
                m.next = "ANSWER"
        with m.State("SEND_NEXT"):
            m.d.sync += self.wanted.eq(self.width)
            m.next = "TAKE_WORD"
            with m.If(self.received_all | ~self.has_room):
                self._store(m, self.count, 2, "ANSWER")
            with m.Elif(self.short_word):
                self._store(m, self.count, 2, "ANSWER")
                m.d.sync += self.status.eq(Status.LENGTH)
        with m.State("DO_WORD"):
            m.d.comb += self.pushed.eq(1)
            m.d.sync += self.count.eq(self.count + 1)
            m.next = "SEND_LOOK"
        most, more = Signal(LENGTH_BITS, name="most"), Signal(name="more")
        with m.State("DO_MOST"):
            m.d.sync += most.eq(self._fetched(2))
            m.next = "RECEIVE_LOOK"
        bytes_each = word_bytes(self.output)
        fits = self.count != PAYLOAD // bytes_each
        m.d.sync += more.eq((self.count != most) & fits & results.r_rdy)
        with m.State("RECEIVE_NEXT"):
            m.next = "ANSWER"
            with m.If(more):
                m.d.comb += results.r_en.eq(1)
                m.d.sync += self.count.eq(self.count + 1)
                self._store(m, results.r_data, bytes_each, "RECEIVE_NEXT")
