"""The walk over a layer's tiles, with a register behind every sum and every product."""

from collections.abc import Sequence

from amaranth.hdl import Module, Mux, Shape, Signal, Value, signed

from rtl.core.tile_walker import PRODUCTS, TileWalker

PRODUCT_BITS = 30
_LOW = 18
"""Bits of a factor that one multiplier of an FPGA takes."""

Plan = tuple[tuple[int, str, Value, Value], ...]
"""For each product the step in which its factors are taken, its name, if it is kept, and they."""


class PipelinedTileWalker(TileWalker):
    """tile[n] as of a `TileWalker`, in the same cycles.

    The ifmap rows and columns under a tile take three registers; the sizes that are products are
    made by two multipliers of 30 and 26 bits, whose partial products (factors of 18 bits) lie in
    registers, and are summed behind them.  What needs no product before it goes first, so that all
    are there in the tenth cycle: weight words, rows of sums; pitch; element start; image step;
    address start; elements.  Beside them the steps of rows and taps.
    """

    def _offer(self, m: Module, offering: Signal, running: Signal, step: Signal) -> None:
        """A register, as a tile command waits for all queues and leads to all counters."""
        with m.If(offering & self.tile.ready):
            m.d.sync += offering.eq(0)
        with m.Elif(running):
            m.d.sync += offering.eq((step == PRODUCTS - 1) | offering)

    def _mark_last(
        self, m: Module, last: Signal, left: Signal, start: tuple[Value, Value], turned: Value
    ) -> None:
        """A register, compared a turn ahead: of a tile, ten cycles; and so is how many turns
        there are."""
        starting, turns = start
        second, single = Signal(name=f"{left.name}_second"), Signal(name=f"{left.name}_single")
        m.d.sync += second.eq(left == 2)
        with m.If(starting):
            m.d.sync += [last.eq(turns == 1), single.eq(turns == 1)]
        with m.Elif(turned):
            m.d.sync += last.eq(Mux(last, single, second))

    def _clip(self, m: Module, axis: str, window: Value, extent: Value) -> tuple[Signal, Signal]:
        """Elements from a window to its span's end inside 0 … extent − 1, at least one; and where
        the window begins, seen from the first of them.  Valid 3 cycles behind the window.
        """
        edge, end = Signal(signed(25), name=f"{axis}_edge"), Signal(signed(27), name=f"{axis}_end")
        low, beyond = Signal(24, name=f"{axis}_low"), Signal(signed(27), name=f"{axis}_beyond")
        size, start = Signal(24, name=f"{axis}_size"), Signal(signed(26), name=f"{axis}_start")
        room = extent - end  # its sign comes from one carry chain; of a comparison it does not
        m.d.sync += [
            edge.eq(extent - 1),
            end.eq(window + self._pick(f"{axis}_span", axis) + 1),
            low.eq(Mux(window < 0, 0, Mux(window >= extent, edge, window))),
            beyond.eq(Mux(room[-1], extent, end)),
            size.eq(Mux(beyond <= low, 1, beyond - low)),
            start.eq(window - low),
        ]
        return size, start

    def _multiply(self, m: Module, step: Signal) -> dict[str, Signal]:
        """A product of two registers a cycle, 2 cycles behind its step; a third keeps it."""
        current = self.current
        blocks = self._pick_pixels("blocks" if self.blocks else "pixels")
        channels = self._pick("channels", "channel")
        steps = self._pick("filter_steps", "filter")
        product, pitch = Signal(signed(PRODUCT_BITS), name="product"), Signal(26, name="pitch")
        stepped = Signal(26, name="stepped")
        size, start = self.size, self.start
        rows = Signal(24, name="output_rows")
        kept: dict[str, Signal] = {
            "element_start": Signal(signed(26)),
            "row_step": Signal(26),
            "address_start": Signal(signed(28)),
            "tap_step": stepped,
            "image_step": Signal(26),
            "weight_words": Signal(24),
        }
        plan: Plan = (
            (0, "weight_words", self._pick("step_words", "channel"), steps),
            (1, "output_rows", blocks, steps),
            (3, "pitch", size["column"], channels),
            (4, "element_start", start["column"], channels),
            (5, "image_step", size["row"], product),  # the pitch, before it is kept
            (6, "address_start", start["row"], pitch),
            (7, "", self._pick("images", "image"), product),  # the image step
        )
        self._products(m, step, plan, product, {**kept, "pitch": pitch, "output_rows": rows})
        beside: Plan = (
            (6, "row_step", current.row_stride, pitch),
            (7, "", current.tap_rows, pitch),
        )
        self._products(m, step, beside, stepped, kept)
        self.pitch, self.ifmap_elements, self.product = pitch, product, rows
        return kept

    def _products(
        self,
        m: Module,
        step: Signal,
        plan: Plan,
        product: Signal,
        kept: dict[str, Signal],
    ) -> None:
        """One multiplier: what it multiplies in which step, and where that is kept, if anywhere."""
        is_signed = product.shape().signed
        width = max(len(left) for _, _, left, _ in plan) + is_signed
        a, b = Signal(Shape(width, is_signed)), Signal(26)
        with m.Switch(step):
            for number, _, left, right in plan:
                with m.Case(number):
                    m.d.sync += [a.eq(left), b.eq(right)]
        partial = partial_products(a, b, len(product))
        made = [Signal(len(part), name="partial") for part in partial]
        with m.If(step != PRODUCTS):
            m.d.sync += [register.eq(part) for register, part in zip(made, partial, strict=True)]
        m.d.comb += product.eq(sum_of_partials(made))
        for number, name, _, _ in plan:
            if name:
                with m.If(step == number + 2):
                    m.d.sync += kept[name].eq(product)


def partial_products(a: Signal, b: Signal, bits: int) -> list[Value]:
    """What a · b modulo 2^bits is the sum of, each made by one multiplier of an FPGA.

    With a = a₁ · 2^18 + a₀ and b alike: a₀ · b₀; and to be shifted by 18, as many bits of a₀ · b₁
    and of a₁ · b₀ as are left above; the last only if a is so long.
    """
    left = bits - _LOW
    parts: list[Value] = [(a[:_LOW] * b[:_LOW])[:bits], (a[:_LOW][:left] * b[_LOW:])[:left]]
    if len(a) > _LOW:
        parts.append(((a >> _LOW) * b[:left])[:left])
    return parts


def sum_of_partials(parts: Sequence[Value]) -> Value:
    """a · b of `partial_products`."""
    low, *across = parts
    total = across[0] if len(across) == 1 else across[0] + across[1]
    return low + (total << _LOW)
