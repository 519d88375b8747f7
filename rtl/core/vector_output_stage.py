"""The output stage with per-vector scales: from accumulators to the ofmap port."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring

from archsim.codecs.vector_output import VectorOutput
from archsim.errors import require
from rtl.core.commands import OUTPUT_FIELDS, command_layout
from rtl.core.credits import Credits
from rtl.core.delay import Delay
from rtl.core.output_stage import output_ports
from rtl.core.queue import Queue
from rtl.core.sram import Sram, address_bits
from rtl.core.vector_requantize import VectorRequantize
from rtl.hierarchy import place


class VectorOutputStage(wiring.Component):
    """ofmap[n] = `VectorOutput.compute` of accumulators[row_order[n]], n = 0 … output_words − 1.

    The accumulators hold row (step, pixel) at step · pixels + pixel; rows leave in the order of
    `output.row_order`: for vectors of a pixel, which are G rows or, the last, fewer; for pixels;
    for rows of the vector.  A word is the values of `lanes` channels, lane 0 lowest, and above
    them the scales of its vectors; a vector of G rows has its scale in each of their words.  A bias
    word, one a step, is `lanes` biases, and above them `lanes` multipliers; without a bias these
    are 0 and 1.  Lanes beyond the layer's channels count in their vector's maximum: their sums and
    biases must be 0.

    Latency: `output.latency_cycles` from a read to its word at the port, for every row; a command
    is taken one cycle before its first read.  Throughput: one word a cycle, if the queue holds
    `output.queue_words`.  Back-pressure: the rows of a vector are read in successive cycles, the
    first when the queue has room for them all, so nothing is lost and nothing waits in the
    pipeline.  Raises InputError for a queue that does not hold a vector's rows.

    Members
    -------
    command: the output tiles; ofmap: their words; summed: an output tile is complete; bias_loaded:
    its bias words are; released, bias_released: the halves may be filled again; bias_write,
    bias_write_half, bias_write_address, bias_write_data: from the loader; read_half, read_address,
    read_data: of the accumulators; count_read: one of their rows is read in this cycle.
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

    def __init__(self, *, output: VectorOutput, depths: tuple[int, int], queue_depth: int) -> None:
        rows = output.rows_per_vector
        require(
            queue_depth >= rows,
            f"queue_depth must be at least the {rows} rows of a vector, not {queue_depth}",
        )
        self.output = output
        self.depth, self.bias_depth = depths
        self.queue_depth = queue_depth
        bits = output.word_bits, output.bias_bits, output.lanes * output.sum_bits
        super().__init__(output_ports(depths, *bits))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        current = Signal(command_layout(*OUTPUT_FIELDS))
        first_row, rows = Signal(), Signal(range(self.output.rows_per_vector + 1))
        issue, last = self._issue(m, current, first_row, rows)
        step = self._walk(m, current, (issue, first_row), rows)
        bias = self._bias(m, current, step, last)
        missing = (self.output.rows_per_vector - rows)[: len(rows)]
        word = self._pipeline(m, current, bias, Cat(first_row, missing))
        queue = place(m, "queue", Queue, width=len(word), depth=self.queue_depth)
        cycles = self.output.latency_cycles - 1
        valid = place(m, "valid_delay", Delay, bits=1, cycles=cycles)
        m.d.comb += [
            valid.i.eq(issue),
            queue.i.valid.eq(valid.o),
            queue.i.payload.eq(word),
            self.ofmap.valid.eq(queue.o.valid),
            self.ofmap.payload.eq(queue.o.payload),
            queue.o.ready.eq(self.ofmap.ready),
        ]
        return m

    def _issue(
        self, m: Module, current: data.View, first_row: Signal, rows: Signal
    ) -> tuple[Signal, Signal]:
        """Issue one read a cycle; returns (issue, last)."""
        complete = place(m, "complete", Credits, initial=0, limit=2)
        biased = place(m, "biased", Credits, initial=0, limit=2)
        running, first, issue, last = Signal(), Signal(), Signal(), Signal()
        left = Signal(24)
        ready = complete.available & (biased.available | ~current.has_bias)
        room = self._room(m, issue, rows)
        m.d.comb += [
            self.command.ready.eq(~running),
            issue.eq(running & (~first_row | (room & (~first | ready)))),
            last.eq(issue & (left == 1)),
            complete.give.eq(self.summed),
            complete.take.eq(issue & first),
            biased.give.eq(self.bias_loaded),
            biased.take.eq(issue & first & current.has_bias),
            self.released.eq(last),
            self.bias_released.eq(last & current.has_bias),
            self.count_read.eq(issue),
        ]
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += [
                running.eq(1),
                first.eq(1),
                current.eq(self.command.payload),
                left.eq(self.command.payload.output_words),
            ]
        with m.If(issue):
            m.d.sync += [first.eq(0), left.eq(left - 1)]
        with m.If(last):
            m.d.sync += [running.eq(0), self.read_half.eq(~self.read_half)]
        return issue, last

    def _room(self, m: Module, issue: Signal, rows: Signal) -> Value:
        """Whether the queue has places for a vector of so many rows."""
        places = Signal(range(self.queue_depth + 1), init=self.queue_depth)
        left = self.ofmap.valid & self.ofmap.ready
        with m.If(issue & ~left):
            m.d.sync += places.eq(places - 1)
        with m.Elif(left & ~issue):
            m.d.sync += places.eq(places + 1)
        return places >= rows

    def _walk(
        self, m: Module, current: data.View, issued: tuple[Signal, Signal], rows: Signal
    ) -> Signal:
        """Address of the next read, and first_row and rows of its vector; returns its step."""
        vector_ends, pixels_end = self._count(m, current, issued, rows)
        vector_address = Signal.like(self.read_address, name="vector_address")
        step, vector_step = (
            Signal(address_bits(self.bias_depth), name=name) for name in ("step", "vector_step")
        )
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += Cat(self.read_address, vector_address, step, vector_step).eq(0)
        with m.If(issued[0] & ~vector_ends):
            m.d.sync += [
                step.eq(step + 1),
                self.read_address.eq(self.read_address + current.pixels),
            ]
        with m.Elif(issued[0]):
            following = Mux(pixels_end, self.read_address, vector_address) + 1
            following_step = Mux(pixels_end, step + 1, vector_step)
            m.d.sync += [
                step.eq(following_step),
                vector_step.eq(following_step),
                self.read_address.eq(following),
                vector_address.eq(following),
            ]
        return step

    def _count(
        self, m: Module, current: data.View, issued: tuple[Signal, Signal], rows: Signal
    ) -> tuple[Value, Value]:
        """Whether the next read is its vector's last, and that vector the last pixel's."""
        issue, first_row = issued
        group = self.output.rows_per_vector
        row, pixel, steps_left = Signal(range(group)), Signal(24), Signal(24)
        m.d.comb += [
            first_row.eq(row == 0),
            rows.eq(Mux(steps_left < group, steps_left, group)),
        ]
        vector_ends, pixels_end = row == rows - 1, pixel == current.pixels - 1
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += [
                Cat(row, pixel).eq(0),
                steps_left.eq(self.command.payload.filter_steps),
            ]
        with m.If(issue):
            m.d.sync += row.eq(Mux(vector_ends, 0, row + 1))
        with m.If(issue & vector_ends):
            m.d.sync += pixel.eq(Mux(pixels_end, 0, pixel + 1))
            with m.If(pixels_end):
                m.d.sync += steps_left.eq(steps_left - group)
        return vector_ends, pixels_end

    def _bias(self, m: Module, current: data.View, step: Signal, last: Signal) -> Value:
        """The bias word of the read issued a cycle ago; biases 0 and multipliers 1 without."""
        output = self.output
        half, used, selected = Signal(), Signal(), Signal()
        reads: list[Signal] = []
        for number in range(2):
            store = place(m, f"bias_{number}", Sram, bits=output.bias_bits, depth=self.bias_depth)
            m.d.comb += [
                store.write.eq(self.bias_write & (self.bias_write_half == number)),
                store.write_address.eq(self.bias_write_address),
                store.write_data.eq(self.bias_write_data),
                store.read_address.eq(step),
            ]
            reads.append(store.read_data)
        m.d.sync += [used.eq(current.has_bias), selected.eq(half)]
        with m.If(last):
            m.d.sync += half.eq(half ^ current.has_bias)
        ones = Cat(C(1, output.multiplier_bits) for _ in range(output.lanes))
        without = Cat(C(0, output.lanes * output.sum_bits), ones)
        return Mux(used, Mux(selected, reads[1], reads[0]), without)

    def _pipeline(self, m: Module, current: data.View, bias: Value, token: Value) -> Value:
        """Requantise read_data, with what was current when it was read."""
        output = self.output
        unit = place(m, "requantize", VectorRequantize, output=output)
        biases = output.lanes * output.sum_bits
        shift, relu = Signal.like(unit.shift, name="shift"), Signal(name="relu")
        m.d.sync += [shift.eq(current.shift), relu.eq(current.relu)]
        m.d.comb += [
            unit.acc.eq(self.read_data),
            unit.bias.eq(bias[:biases]),
            unit.multiplier.eq(bias[biases:]),
            unit.shift.eq(shift),
            unit.relu.eq(relu),
        ]
        if output.rows_per_vector > 1:
            taken = Signal(len(token), name="row_token")
            m.d.sync += taken.eq(token)
            m.d.comb += Cat(unit.first, unit.missing).eq(taken)
        return unit.o
