"""The output stage with per-vector scales: from accumulators to the ofmap port."""

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring

from archsim.codecs.vector_output import VectorOutput
from archsim.errors import require
from rtl.core.commands import OUTPUT_FIELDS, command_layout
from rtl.core.credits import Credits
from rtl.core.delay import Delay
from rtl.core.memory import PLAIN_BANKS, Banks
from rtl.core.output_packer import PackingPlace
from rtl.core.output_stage import output_ports, pack_words
from rtl.core.sram import address_bits
from rtl.core.vector_requantize import VectorRequantize
from rtl.hierarchy import place


class VectorOutputStage(wiring.Component):
    """`VectorOutput.compute` of accumulators[row_order[n]], n = 0 … output_rows − 1, packed.

    The accumulators hold row (step, pixel) at step · pixels + pixel; rows leave in the order of
    `output.row_order`: for vectors of a pixel, which are G rows or, the last, fewer; for pixels;
    for rows of the vector.  A vector leaves as its scale and its values behind it, of its own
    channels alone, in units (`VectorOutput.unit_bits`); every `word_units` of them are a word,
    which goes on into the next vector and the next tile (`OutputPacker`).  A bias word, one a step,
    is `lanes` biases, and above them `lanes` multipliers; without a bias these are 0 and 1.  Lanes
    beyond the layer's channels count in their vector's maximum: their sums and biases must be 0.

    Latency: `output.latency_cycles` + 1 from a read to the word that it completes at the port, for
    every row; a command is taken one cycle before its first read.  Throughput: one row a cycle, if
    the queue holds `output.queue_words` + 1.  Back-pressure: the rows of a vector are read in
    successive cycles, the first when the queue has room for all words that they complete, so
    nothing is lost and nothing waits in the pipeline.  Raises InputError for a queue that does not
    hold a vector's rows.

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

    def __init__(
        self,
        *,
        output: VectorOutput,
        depths: tuple[int, int],
        queue_depth: int,
        banks: Banks = PLAIN_BANKS,
    ) -> None:
        rows = output.rows_per_vector
        require(
            queue_depth >= rows,
            f"queue_depth must be at least the {rows} rows of a vector, not {queue_depth}",
        )
        self.output = output
        self.depth, self.bias_depth = depths
        self.queue_depth = queue_depth
        self.banks = banks
        bits = output.word_bits, output.bias_bits, output.lanes * output.sum_bits
        super().__init__({**output_ports(depths, *bits), **banks.port(self.bias_depth)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        output = self.output
        current = Signal(command_layout(*OUTPUT_FIELDS))
        self.packing = place(m, "packing", PackingPlace, word=output.word_units)
        self.first_row, self.short = Signal(name="first_row"), Signal(name="short_vector")
        self.last_step = Signal(name="last_step")
        rows = Signal(range(output.rows_per_vector + 1), name="rows")
        issue, last = self._issue(m, current, rows)
        step = self._walk(m, current, issue, rows)
        bias = self._bias(m, current, step, last)
        missing = (output.rows_per_vector - rows)[: len(rows)]
        row = self._pipeline(m, current, bias, Cat(self.first_row, missing))
        shape = output.word_units, output.unit_bits
        pack_words(m, self, self._in_units(m, row), shape, output.latency_cycles - 1)
        return m

    def _in_units(self, m: Module, row: Value) -> Value:
        """A row as it leaves: each scale before its values; with G > 1 in the first row alone."""
        output = self.output
        if not output.scaled:
            return row
        bits, scale_bits = output.form.bits, output.form.scale_bits or 0
        own = output.lanes // output.vectors_per_row * bits
        values, scales = row[: output.lanes * bits], row[output.lanes * bits :]
        whole = Cat(
            part
            for n in range(output.vectors_per_row)
            for part in (scales.word_select(n, scale_bits), values.word_select(n, own))
        )
        if output.rows_per_vector == 1:
            return whole
        cycles = output.latency_cycles - 1
        first = place(m, "first_row_delay", Delay, bits=1, cycles=cycles)
        m.d.comb += first.i.eq(self.first_row)
        return Mux(first.o, whole, values)

    def _issue(self, m: Module, current: data.View, rows: Signal) -> tuple[Signal, Signal]:
        """Issue one read a cycle; returns (issue, last)."""
        complete = place(m, "complete", Credits, initial=0, limit=2)
        biased = place(m, "biased", Credits, initial=0, limit=2)
        running, first, issue, last = Signal(), Signal(), Signal(), Signal()
        packing = self.packing
        left, ending = Signal(24, name="rows_left"), Signal(name="ending")
        ready = complete.available & (biased.available | ~current.has_bias)
        places, room = self._room(m, self._sizes(m, current, rows))
        m.d.comb += [
            self.command.ready.eq(~running & ~ending),
            packing.take.eq(issue),
            packing.flush.eq(ending & (places != 0)),
            issue.eq(running & (~self.first_row | (room & (~first | ready)))),
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
                left.eq(self.command.payload.output_rows),
            ]
        with m.If(issue):
            m.d.sync += [first.eq(0), left.eq(left - 1)]
        with m.If(last):
            m.d.sync += [
                running.eq(0),
                self.read_half.eq(~self.read_half),
                ending.eq(current.ends_layer & packing.begun),
            ]
        with m.Elif(packing.flush):
            m.d.sync += ending.eq(0)
        return issue, last

    def _row_units(self, lanes: Value, *, first: bool) -> Value:
        """Units of a row of so many lanes, the scales of its vectors counted if it is a first."""
        output = self.output
        per_vector = output.lanes // output.vectors_per_row
        sizes = [
            output.value_units * count
            + (output.scale_units * -(-count // per_vector) if first else 0)
            for count in range(output.lanes + 1)
        ]
        return Array(C(size, range(output.word_units + 1)) for size in sizes)[lanes]

    def _sizes(self, m: Module, current: data.View, rows: Signal) -> Value:
        """Units of the next row, to `packing`; returns those of all rows of its vector."""
        output = self.output
        lanes = Signal(range(output.lanes + 1), name="row_lanes")
        m.d.comb += [
            lanes.eq(Mux(self.last_step, current.step_lanes, output.lanes)),
            self.packing.units.eq(
                Mux(
                    self.first_row,
                    self._row_units(lanes, first=True),
                    self._row_units(lanes, first=False),
                )
            ),
        ]
        if output.rows_per_vector == 1:
            return self.packing.units
        before = Array(
            output.scale_units + output.value_units * output.lanes * max(count - 1, 0)
            for count in range(output.rows_per_vector + 1)
        )[rows]
        behind = Mux(self.short, current.step_lanes, output.lanes)[: len(lanes)]
        return before + self._row_units(behind, first=False)

    def _room(self, m: Module, vector_units: Value) -> tuple[Signal, Value]:
        """Places in the queue, and whether they suffice for what the vector's rows complete."""
        packing = self.packing
        places = Signal(range(self.queue_depth + 1), init=self.queue_depth, name="places")
        left = self.ofmap.valid & self.ofmap.ready
        with m.If(packing.o.complete & ~left):
            m.d.sync += places.eq(places - 1)
        with m.Elif(left & ~packing.o.complete):
            m.d.sync += places.eq(places + 1)
        return places, places >= self._completed(vector_units)

    def _completed(self, vector_units: Value) -> Value:
        """Words that so many units complete, behind what is begun of one."""
        total = self.packing.o.position + vector_units
        counts = range(1, self.output.rows_per_vector + 1)
        return sum((total >= n * self.output.word_units for n in counts), C(0, 1))

    def _walk(self, m: Module, current: data.View, issue: Signal, rows: Signal) -> Signal:
        """Address of the next read, and first_row and rows of its vector; returns its step."""
        vector_ends, pixels_end = self._count(m, current, issue, rows)
        vector_address = Signal.like(self.read_address, name="vector_address")
        step, vector_step = (
            Signal(address_bits(self.bias_depth), name=name) for name in ("step", "vector_step")
        )
        with m.If(self.command.ready & self.command.valid):
            m.d.sync += Cat(self.read_address, vector_address, step, vector_step).eq(0)
        with m.If(issue & ~vector_ends):
            m.d.sync += [
                step.eq(step + 1),
                self.read_address.eq(self.read_address + current.pixels),
            ]
        with m.Elif(issue):
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
        self, m: Module, current: data.View, issue: Signal, rows: Signal
    ) -> tuple[Value, Value]:
        """Whether the next read is its vector's last, and that vector the last pixel's."""
        group = self.output.rows_per_vector
        row, pixel, steps_left = Signal(range(group)), Signal(24), Signal(24)
        m.d.comb += [
            self.first_row.eq(row == 0),
            self.short.eq(steps_left <= group),
            rows.eq(Mux(steps_left < group, steps_left, group)),
        ]
        vector_ends, pixels_end = row == rows - 1, pixel == current.pixels - 1
        m.d.comb += self.last_step.eq(self.short & vector_ends)
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
            store = self.banks.place(
                m, self, f"bias_{number}", number, bits=output.bias_bits, depth=self.bias_depth
            )
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
