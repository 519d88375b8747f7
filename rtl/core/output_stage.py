"""The output stage: from accumulators to the ofmap port."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.commands import OUTPUT_FIELDS, command_layout
from rtl.core.countdown import countdown_flags
from rtl.core.credits import Credits
from rtl.core.delay import Delay
from rtl.core.memory import PLAIN_BANKS, Banks
from rtl.core.output_packer import OutputPacker, PackingPlace
from rtl.core.queue import Queue
from rtl.core.requantize import Requantize
from rtl.core.sram import address_bits
from rtl.hierarchy import place


def output_ports(
    depths: tuple[int, int], ofmap_bits: int, bias_bits: int, row_bits: int
) -> dict[str, Any]:
    """The members of an output stage, of whatever arithmetic.

    depths: of accumulators and bias memory; bits: of an ofmap word, a bias word, a row of sums.
    """
    depth, bias_depth = depths
    return {
        "command": In(stream.Signature(command_layout(*OUTPUT_FIELDS))),
        "ofmap": Out(stream.Signature(ofmap_bits)),
        "summed": In(1),
        "bias_loaded": In(1),
        "released": Out(1),
        "bias_released": Out(1),
        "bias_write": In(1),
        "bias_write_half": In(1),
        "bias_write_address": In(address_bits(bias_depth)),
        "bias_write_data": In(bias_bits),
        "read_half": Out(1),
        "read_address": Out(address_bits(depth)),
        "read_data": In(row_bits),
        "count_read": Out(1),
    }


def pack_words(m: Module, stage: Any, row: Value, shape: tuple[int, int], cycles: int) -> None:
    """Rows of (units, bits of a unit) into the words of a stage's ofmap, through its queue.

    cycles: from a row's place in `stage.packing` to the row.
    """
    units, unit_bits = shape
    packer = place(m, "packer", OutputPacker, units=units, unit_bits=unit_bits)
    queue = place(m, "queue", Queue, width=units * unit_bits, depth=stage.queue_depth)
    there = Value.cast(stage.packing.o)
    line = place(m, "place_delay", Delay, bits=len(there), cycles=cycles)
    m.d.comb += [
        line.i.eq(there),
        packer.place.eq(line.o),
        packer.row.eq(row),
        queue.i.valid.eq(packer.write),
        queue.i.payload.eq(packer.word),
        stage.ofmap.valid.eq(queue.o.valid),
        stage.ofmap.payload.eq(queue.o.payload),
        queue.o.ready.eq(stage.ofmap.ready),
    ]


class OutputStage(wiring.Component):
    """requantize(accumulators[n] + bias), n = 0 … output_rows − 1, packed into whole words.

    A row has outputs in its lowest lanes: of the tile's last step in `step_lanes`, or with a scalar
    bias, where rows are of `columns` pixels, in as many as its block has pixels.  Lanes without an
    output leave nothing, and a word goes on into the next tile (`OutputPacker`), but for the last
    one of the layer.

    Latency: 3 + `column_latency_cycles` from a read to the word that it completes at the port, 5
    here; a command is taken one cycle before its first read.  Throughput: one row a cycle.
    Back-pressure: a read that completes a word waits while as many words are under way as the queue
    holds, so nothing is lost and nothing waits in the pipeline.

    read_registers: cycles more from a read to read_data, and to the word.

    A column's arithmetic is `Requantize`.  Another one overrides `_column` and
    `column_latency_cycles`, as `rtl.core.float_output.FloatOutputStage` does.

    Members
    -------
    command: the output tiles; ofmap: their words; summed: an output tile is complete; bias_loaded:
    its bias words are; released, bias_released: the halves may be filled again; bias_write,
    bias_write_half, bias_write_address, bias_write_data: from the loader; read_half, read_address,
    read_data: of the accumulators; count_read: one of their rows is read in this cycle; settings:
    of a bias memory that takes some.
    """

    command: stream.Interface
    ofmap: stream.Interface
    summed: Signal
    bias_loaded: Signal
    released: Signal
    bias_released: Signal
    bias_write: Signal
    bias_write_half: Signal
    bias_write_address: Signal
    bias_write_data: Signal
    read_half: Signal
    read_address: Signal
    read_data: Signal
    count_read: Signal

    ahead = False
    """Whether what a read waits for is compared a row ahead."""

    def __init__(  # noqa: PLR0913
        self,
        *,
        columns: int,
        accumulator_bits: int,
        operand_bits: int,
        depths: tuple[int, int],
        queue_depth: int,
        scalar_bias: bool,
        banks: Banks = PLAIN_BANKS,
        read_registers: int = 0,
    ) -> None:
        self.columns = columns
        self.read_registers = read_registers
        self.accumulator_bits = accumulator_bits
        self.operand_bits = operand_bits
        self.depth, self.bias_depth = depths
        self.queue_depth = queue_depth
        self.banks = banks
        self.scalar_bias = scalar_bias
        self.bias_lanes = 1 if scalar_bias else columns
        bits = columns * operand_bits, self.bias_lanes * accumulator_bits
        ports = output_ports(depths, *bits, columns * accumulator_bits)
        super().__init__({**ports, **banks.port(self.bias_depth)})

    @property
    def column_latency_cycles(self) -> int:
        """Of the arithmetic of a column."""
        return 2

    @property
    def parameter_cycles(self) -> int:
        """For which the parameters travel beside a column's arithmetic."""
        return self.column_latency_cycles

    @property
    def multiplier_cycles(self) -> int:
        """Behind a row's sums, in which a column takes its multiplier."""
        return 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.current = current = Signal(command_layout(*OUTPUT_FIELDS))
        self.packing = place(m, "packing", PackingPlace, word=self.columns, **self._ahead)
        issue, last = self._walk(m, current)
        bias = self._bias(m, current, issue, last)
        words = self._pipeline(m, current, bias)
        cycles = 1 + self.read_registers + self.column_latency_cycles
        pack_words(m, self, words, (self.columns, self.operand_bits), cycles)
        return m

    @property
    def _ahead(self) -> dict[str, bool]:
        return {"ahead": True} if self.ahead else {}

    def _walk(self, m: Module, current: data.View) -> tuple[Signal, Signal]:
        """Issue one read a cycle; returns (issue, last)."""
        complete = place(m, "complete", Credits, initial=0, limit=2, **self._ahead)
        biased = place(m, "biased", Credits, initial=0, limit=2, **self._ahead)
        words = {"initial": self.queue_depth, "limit": self.queue_depth}
        room = place(m, "room", Credits, **words, **self._ahead)
        running, first, issue, last = Signal(), Signal(), Signal(), Signal()
        packing = self.packing
        left, ending = Signal(24, name="rows_left"), Signal(name="ending")
        take, rows = self.command.ready & self.command.valid, self.command.payload.output_rows
        _, last_row = countdown_flags(m, left, start=take, count=rows, turn=issue, ahead=self.ahead)
        ready = complete.available & (biased.available | ~current.has_bias)
        m.d.comb += [
            self.command.ready.eq(~running & ~ending),
            packing.units.eq(self._lanes(m, current, issue, left)),
            packing.take.eq(issue),
            packing.flush.eq(ending & room.available),
            issue.eq(running & (room.available | ~packing.complete) & (~first | ready)),
            last.eq(issue & last_row),
            complete.give.eq(self.summed),
            complete.take.eq(issue & first),
            biased.give.eq(self.bias_loaded),
            biased.take.eq(issue & first & current.has_bias),
            room.give.eq(self.ofmap.valid & self.ofmap.ready),
            room.take.eq(packing.o.complete),
            self.released.eq(last),
            self.bias_released.eq(last & current.has_bias),
            self.count_read.eq(issue),
        ]
        with m.If(take):
            m.d.sync += [
                running.eq(1),
                first.eq(1),
                current.eq(self.command.payload),
                left.eq(rows),
                self.read_address.eq(0),
            ]
        with m.If(issue):
            m.d.sync += [
                first.eq(0),
                left.eq(left - 1),
                self.read_address.eq(self.read_address + 1),
            ]
        with m.If(last):
            m.d.sync += [
                running.eq(0),
                self.read_half.eq(~self.read_half),
                ending.eq(current.ends_layer & packing.begun),
            ]
        with m.Elif(packing.flush):
            m.d.sync += ending.eq(0)
        return issue, last

    def _lanes(self, m: Module, current: data.View, issue: Signal, left: Signal) -> Value:
        """Lanes of the next row that have an output."""
        if not self.scalar_bias:
            return Mux(left <= current.pixels, current.step_lanes, self.columns)
        pixels, filters = Signal(24, name="pixels_left"), Signal(24, name="filters_left")
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += [
                pixels.eq(self.command.payload.pixels),
                filters.eq(self.command.payload.filter_steps),
            ]
        with m.Elif(issue):
            m.d.sync += filters.eq(filters - 1)
            with m.If(filters == 1):
                m.d.sync += [filters.eq(current.filter_steps), pixels.eq(pixels - self.columns)]
        return Mux(pixels < self.columns, pixels, self.columns)

    def _bias(self, m: Module, current: data.View, issue: Signal, last: Signal) -> Signal:
        """The bias word of the read issued a cycle ago; zero without a bias."""
        lanes = self.bias_lanes
        word = Signal(lanes * self.accumulator_bits)
        address, half = Signal(range(max(self.bias_depth, 2))), Signal()
        used, selected = Signal(), Signal()
        reads: list[Signal] = []
        for number in range(2):
            store = self.banks.place(
                m, self, f"bias_{number}", number, bits=len(word), depth=self.bias_depth
            )
            m.d.comb += [
                store.write.eq(self.bias_write & (self.bias_write_half == number)),
                store.write_address.eq(self.bias_write_address),
                store.write_data.eq(self.bias_write_data),
                store.read_address.eq(address),
            ]
            reads.append(store.read_data)
        m.d.sync += [used.eq(current.has_bias), selected.eq(half)]
        m.d.comb += word.eq(Mux(used, Mux(selected, reads[1], reads[0]), 0))
        turn = self._turns(m, current, address, (issue, last))
        with m.If(issue):
            if self.scalar_bias:
                m.d.sync += address.eq(Mux(turn, 0, address + 1))
            else:
                m.d.sync += address.eq(Mux(turn, address + 1, address))
        with m.If(last):
            m.d.sync += [address.eq(0), half.eq(half ^ current.has_bias)]
        return word

    def _turns(
        self, m: Module, current: data.View, address: Signal, issued: tuple[Signal, Signal]
    ) -> Value:
        """Whether the row is the last of its bias word; with a scalar bias, of its block."""
        if self.scalar_bias:
            return address == current.filter_steps - 1
        repeats, (issue, last) = Signal(24), issued
        turn = repeats == current.pixels - 1
        with m.If(issue):
            m.d.sync += repeats.eq(Mux(turn, 0, repeats + 1))
        with m.If(last):
            m.d.sync += repeats.eq(0)
        return turn

    def _pipeline(self, m: Module, current: data.View, bias: Signal) -> Signal:
        """The columns of read_data through their arithmetic; the parameters travel with the words.

        stages[n] are the parameters of what was taken from read_data n cycles ago.
        """
        words = Signal(self.columns * self.operand_bits)
        if self.read_registers:
            line = place(m, "bias_delay", Delay, bits=len(bias), cycles=self.read_registers)
            m.d.comb += line.i.eq(bias)
            bias = line.o
        cycles = 1 + self.read_registers + self.parameter_cycles
        stages = [Signal.like(current, name=f"stage_{n}") for n in range(cycles)]
        m.d.sync += [
            late.eq(early) for early, late in zip([current, *stages], stages, strict=False)
        ]
        for column in range(self.columns):
            unit = self._column(m, column, stages[self.read_registers :])
            lane = 0 if self.scalar_bias else column
            m.d.comb += [
                unit.acc.eq(self.read_data.word_select(column, self.accumulator_bits)),
                unit.bias.eq(bias.word_select(lane, self.accumulator_bits)),
                words.word_select(column, self.operand_bits).eq(unit.o),
            ]
        return words

    def _column(self, m: Module, column: int, stages: list[Any]) -> Any:
        """The arithmetic of a column, with its parameters; acc, bias and o are not yet driven."""
        widths = {
            "accumulator_bits": self.accumulator_bits,
            "operand_bits": self.operand_bits,
        }
        unit = self._requantize(m, f"requantize_{column}", widths)
        multiplied = stages[2]
        m.d.comb += [
            unit.multiplier.eq(stages[self.multiplier_cycles].multiplier),
            unit.shift.eq(multiplied.shift),
            unit.relu.eq(multiplied.relu),
        ]
        return unit

    def _requantize(self, m: Module, name: str, widths: dict[str, int]) -> Any:
        """Place what makes outputs of sums."""
        return place(m, name, Requantize, **widths)
