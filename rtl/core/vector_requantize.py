"""From rows of sums to the next layer's values and per-vector scales: the arithmetic, pipelined."""

from amaranth.hdl import Array, C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from archsim.codecs.vector_output import VectorOutput
from rtl.core.delay import Delay
from rtl.hierarchy import place

SHIFT_BITS = 6
RESCALE_CYCLES = 2
"""From a row of sums to its limited z."""


class ChannelRescale(wiring.Component):
    """z = limit(relu(⌊((acc + bias) · multiplier + 2^(shift−1)) / 2^shift⌋)).

    Shift 0 rounds nothing.  The limits are `output.low` and `output.high`.  Latency: 2 registers
    (sum, product), z combinational behind them; acc, bias and multiplier come together, shift and
    relu 2 cycles later.  Throughput: one a cycle.  Never stalls.  It rounds without an adder for
    2^(shift−1): twice the product is shifted, 1 is added, and the lowest bit dropped.
    """

    acc: Signal
    bias: Signal
    multiplier: Signal
    shift: Signal
    relu: Signal
    z: Signal

    def __init__(self, *, output: VectorOutput) -> None:
        self.output = output
        self.z_bits = output.high.bit_length() + output.form.signed
        super().__init__(
            {
                "acc": In(signed(output.sum_bits)),
                "bias": In(signed(output.sum_bits)),
                "multiplier": In(output.multiplier_bits),
                "shift": In(SHIFT_BITS),
                "relu": In(1),
                "z": Out(self.z_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        output = self.output
        total = Signal(signed(output.sum_bits + 1), reset_less=True)
        multiplier = Signal(output.multiplier_bits, reset_less=True)
        product = Signal(signed(output.product_bits), reset_less=True)
        halves = Signal(signed(output.product_bits + 1))
        rounded = Signal(signed(output.product_bits + 1))
        m.d.sync += [
            total.eq(self.acc + self.bias),
            multiplier.eq(self.multiplier),
            product.eq(total * multiplier),
        ]
        m.d.comb += [
            halves.eq(Cat(C(0, 1), product).as_signed() >> self.shift),
            rounded.eq((halves + 1) >> 1),
            self.z.eq(rounded),
        ]
        with m.If(rounded > output.high):
            m.d.comb += self.z.eq(output.high)
        with m.Elif((rounded < 0) & self.relu):
            m.d.comb += self.z.eq(0)
        with m.Elif(rounded < output.low):
            m.d.comb += self.z.eq(output.low)
        return m


class VectorScale(wiring.Component):
    """scale = ⌈max over the rows of a vector of top / Qmax⌉.

    G is `output.rows_per_vector`.  Latency: 1 cycle with G = 1.  Else the rows of a vector come in
    successive cycles, and scale stands for as many, G + 1 cycles after each row: a register for the
    maximum of the rows so far, one for the scale, G − 1 cycles for the rows that follow.
    Throughput: one row a cycle, a vector behind the other.  Never stalls.

    Members
    -------
    top: the maximum of a row's |z|; first: of a vector; missing: rows that a short vector has less
    than G, with its first row (both only if G > 1); scale: of the row's vector.
    """

    top: Signal
    first: Signal
    missing: Signal
    scale: Signal

    def __init__(self, *, output: VectorOutput) -> None:
        self.output = output
        rows = output.rows_per_vector
        grouped = {"first": In(1), "missing": In(range(rows))} if rows > 1 else {}
        super().__init__(
            {
                "top": In(output.high.bit_length()),
                **grouped,
                "scale": Out(output.form.scale_bits or 0),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rows = self.output.rows_per_vector
        if rows == 1:
            m.d.comb += self.scale.eq(self._quotient(m, self.top))
            return m
        largest = Signal.like(self.top, name="largest", reset_less=True)
        before = Signal.like(self.top, name="before")
        m.d.comb += before.eq(Mux(self.first, 0, largest))
        m.d.sync += largest.eq(Mux(self.top > before, self.top, before))
        taps: list[Value] = [self._quotient(m, largest)]
        for number in range(1, rows):
            tap = Signal(len(self.scale), name=f"scale_{number}", reset_less=True)
            m.d.sync += tap.eq(taps[-1])
            taps.append(tap)
        token = Cat(self.first, self.missing)
        line = place(m, "token_delay", Delay, bits=len(token), cycles=rows + 1)
        held = Signal.like(self.scale, name="scale_held", reset_less=True)
        m.d.comb += [
            line.i.eq(token),
            self.scale.eq(Mux(line.o[0], Array(taps)[line.o[1:]], held)),
        ]
        m.d.sync += held.eq(self.scale)
        return m

    def _quotient(self, m: Module, top: Value) -> Signal:
        """⌈top / Qmax⌉, a cycle later."""
        largest, by = self.output.form.largest, self.output.scale_division
        scale = Signal(len(self.scale), name="scale_0", reset_less=True)
        m.d.sync += scale.eq(((top + (largest - 1)) * by.multipliers[0]) >> by.shift)
        return scale


class Reciprocal(wiring.Component):
    """o[t + 1] = ⌈2^k / scale[t]⌉, and 0 for the scale 0: a ROM.  Never stalls."""

    scale: Signal
    o: Signal

    def __init__(self, *, output: VectorOutput) -> None:
        self.output = output
        bits = output.form.scale_bits or 0
        super().__init__({"scale": In(bits), "o": Out(output.value_division.bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = self.output.value_division.multipliers
        store = memory.Memory(shape=len(self.o), depth=len(words), init=words)
        m.submodules.words = store
        read = store.read_port()
        m.d.comb += [read.en.eq(1), read.addr.eq(self.scale), self.o.eq(read.data)]
        return m


class ChannelQuotient(wiring.Component):
    """o = sign(z) · ⌊(|z| + ⌊scale / 2⌋) / scale⌋, with the reciprocal of scale a cycle later.

    Latency: 2 registers (|z| + ⌊scale / 2⌋, quotient), the sign combinational behind them.
    Throughput: one a cycle.  Never stalls.

    Members
    -------
    z: |z|, and above it, if values are signed, its sign; scale: of its vector; reciprocal: from
    `Reciprocal`, a cycle later; o: the value.
    """

    z: Signal
    scale: Signal
    reciprocal: Signal
    o: Signal

    def __init__(self, *, output: VectorOutput) -> None:
        self.output = output
        form = output.form
        self.magnitude_bits = output.high.bit_length()
        super().__init__(
            {
                "z": In(self.magnitude_bits + form.signed),
                "scale": In(form.scale_bits or 0),
                "reciprocal": In(output.value_division.bits),
                "o": Out(form.bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        form, by = self.output.form, self.output.value_division
        dividend = Signal(self.magnitude_bits + 1, reset_less=True)
        quotient = Signal(form.largest.bit_length(), reset_less=True)
        m.d.sync += [
            dividend.eq(self.z[: self.magnitude_bits] + (self.scale >> 1)),
            quotient.eq((dividend * self.reciprocal) >> by.shift),
        ]
        m.d.comb += self.o.eq(quotient)
        if form.signed:
            signs = Signal(2, reset_less=True)
            m.d.sync += signs.eq(Cat(self.z[-1], signs))
            with m.If(signs[1]):
                m.d.comb += self.o.eq(-quotient)
        return m


class VectorRequantize(wiring.Component):
    """o = the values of a row of channels, and above them the scales of its vectors.

    `VectorOutput.compute` says what of what.  Latency: `output.latency_cycles` − 3 registers, o
    combinational behind them (the others are the accumulators', the queue's, and its own cycle).
    Throughput: one row a cycle; with G > 1 the rows of a vector in successive cycles.  Never
    stalls.

    Members
    -------
    acc, bias, multiplier: a lane a channel, lane 0 lowest; shift, relu: of all; first, missing: the
    row is a vector's first, which has so many rows less than G (only if G > 1); o: the word.
    """

    acc: Signal
    bias: Signal
    multiplier: Signal
    shift: Signal
    relu: Signal
    first: Signal
    missing: Signal
    o: Signal

    def __init__(self, *, output: VectorOutput) -> None:
        self.output = output
        rows = output.rows_per_vector
        grouped = {"first": In(1), "missing": In(range(rows))} if rows > 1 else {}
        super().__init__(
            {
                "acc": In(output.lanes * output.sum_bits),
                "bias": In(output.lanes * output.sum_bits),
                "multiplier": In(output.lanes * output.multiplier_bits),
                "shift": In(SHIFT_BITS),
                "relu": In(1),
                **grouped,
                "o": Out(output.word_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        z = self._rescaled(m)
        if not self.output.scaled:
            m.d.comb += self.o.eq(Cat(z))
            return m
        magnitudes = self._magnitudes(m, z)
        scales = self._scales(m, magnitudes)
        values = self._quotients(m, magnitudes, scales)
        out = place(m, "scale_delay", Delay, bits=sum(map(len, scales)), cycles=2)
        m.d.comb += [out.i.eq(Cat(scales)), self.o.eq(Cat(*values, out.o))]
        return m

    def _rescaled(self, m: Module) -> list[Value]:
        """z of every lane, RESCALE_CYCLES later."""
        output = self.output
        line = place(m, "rounding_delay", Delay, bits=SHIFT_BITS + 1, cycles=RESCALE_CYCLES)
        m.d.comb += line.i.eq(Cat(self.shift, self.relu))
        z: list[Value] = []
        for lane in range(output.lanes):
            unit = place(m, f"rescale_{lane}", ChannelRescale, output=output)
            m.d.comb += [
                unit.acc.eq(self.acc.word_select(lane, output.sum_bits)),
                unit.bias.eq(self.bias.word_select(lane, output.sum_bits)),
                unit.multiplier.eq(self.multiplier.word_select(lane, output.multiplier_bits)),
                unit.shift.eq(line.o[:SHIFT_BITS]),
                unit.relu.eq(line.o[SHIFT_BITS]),
            ]
            z.append(unit.z)
        return z

    def _magnitudes(self, m: Module, z: list[Value]) -> list[Value]:
        """|z|, and above it the sign if values are signed; a cycle later."""
        bits = self.output.high.bit_length()
        answer: list[Value] = []
        for lane, value in enumerate(z):
            stage = Signal(len(value), name=f"magnitude_{lane}", reset_less=True)
            signed_value = value.as_signed() if self.output.form.signed else value
            negative = value[bits:]
            m.d.sync += stage.eq(Cat(abs(signed_value)[:bits], negative))
            answer.append(stage)
        return answer

    def _scales(self, m: Module, magnitudes: list[Value]) -> list[Value]:
        """The scale of every vector of the row, `output.wait_cycles` after the magnitudes."""
        output = self.output
        bits, count = output.high.bit_length(), output.vectors_per_row
        scales: list[Value] = []
        for number in range(count):
            own = len(magnitudes) // count
            lanes = magnitudes[number * own : (number + 1) * own]
            unit = place(m, f"vector_scale_{number}", VectorScale, output=output)
            top = Signal(bits, name=f"top_{number}", reset_less=True)
            m.d.sync += top.eq(_largest(m, f"vector_{number}", [lane[:bits] for lane in lanes]))
            m.d.comb += unit.top.eq(top)
            if output.rows_per_vector > 1:
                token = Cat(self.first, self.missing)
                cycles = RESCALE_CYCLES + 2
                line = place(m, "first_delay", Delay, bits=len(token), cycles=cycles)
                m.d.comb += [line.i.eq(token), Cat(unit.first, unit.missing).eq(line.o)]
            scales.append(unit.scale)
        return scales

    def _quotients(self, m: Module, magnitudes: list[Value], scales: list[Value]) -> list[Value]:
        """The values, 2 cycles after the scales."""
        output = self.output
        z = Cat(magnitudes)
        line = place(m, "magnitude_delay", Delay, bits=len(z), cycles=output.wait_cycles)
        m.d.comb += line.i.eq(z)
        values: list[Value] = []
        for number, scale in enumerate(scales):
            inverse = place(m, f"reciprocal_{number}", Reciprocal, output=output)
            m.d.comb += inverse.scale.eq(scale)
            own = output.lanes // len(scales)
            for lane in range(number * own, (number + 1) * own):
                unit = place(m, f"quotient_{lane}", ChannelQuotient, output=output)
                m.d.comb += [
                    unit.z.eq(line.o.word_select(lane, len(magnitudes[lane]))),
                    unit.scale.eq(scale),
                    unit.reciprocal.eq(inverse.o),
                ]
                values.append(unit.o)
        return values


def _largest(m: Module, name: str, values: list[Value]) -> Value:
    """The largest of unsigned values, by a combinational tree."""
    level = 0
    while len(values) > 1:
        left_over = values[len(values) // 2 * 2 :]
        pairs = zip(values[::2], values[1::2], strict=False)
        values = []
        for number, (a, b) in enumerate(pairs):
            larger = Signal(len(a), name=f"{name}_larger_{level}_{number}")
            m.d.comb += larger.eq(Mux(a > b, a, b))
            values.append(larger)
        values += left_over
        level += 1
    return values[0]
