"""The walk over a layer's tiles: one layer command in, its tile commands out."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from archsim.tiled.layer_command import PIXEL_SIZES
from rtl.core.commands import command_layout, layer_layout

LOOPS = ("group", "image", "row", "column", "filter", "channel")
PRODUCTS = 9


class TileWalker(wiring.Component):
    """tile[n] = the n-th row of `archsim.tiled.walk`, for the layer of `layer`.

    Loops: groups; then pixels (tiles of images, rows, columns) and filters, one inside the other as
    the layer says; channels.  The sizes that are products are made one after the other by one
    multiplier; the last stays in its register.
    Latency: 10 cycles from a layer command to its first tile command.  Throughput: a tile command
    every 10 cycles.  Back-pressure: a tile command waits until it is taken.

    Members
    -------
    layer: the core's command port; tile: to the dispatcher.

    lanes: of an ifmap word.  blocks: a row of sums holds a block of pixels, of one filter; else
    those of one pixel.  gathers: commands say the words of a row that is gathered.
    """

    layer: stream.Interface
    tile: stream.Interface

    def __init__(self, *, lanes: int, blocks: bool, gathers: bool = False) -> None:
        self.lanes = lanes
        self.blocks = blocks
        self.gathers = gathers
        super().__init__(
            {
                "layer": In(stream.Signature(layer_layout(gathers=gathers))),
                "tile": Out(stream.Signature(command_layout(gathers=gathers))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.current = Signal(layer_layout(gathers=self.gathers))
        running, step = Signal(), Signal(range(PRODUCTS + 1))
        offering = Signal()
        m.d.comb += [
            self.layer.ready.eq(~running),
            self.tile.valid.eq(offering),
        ]
        self._offer(m, offering, running, step)
        taken = Signal()
        m.d.comb += taken.eq(offering & self.tile.ready)
        with m.If(self.layer.valid & self.layer.ready):
            m.d.sync += [running.eq(1), self.current.eq(self.layer.payload), step.eq(0)]
        with m.If(running & ~offering):
            m.d.sync += step.eq(step + 1)
        finished = self._walk(m, taken)
        m.d.comb += self.tile.payload.ends_layer.eq(finished)
        with m.If(taken):
            m.d.sync += step.eq(0)
            with m.If(finished):
                m.d.sync += running.eq(0)
        self._fill(m, self._multiply(m, step))
        return m

    def _offer(self, m: Module, offering: Signal, running: Signal, step: Signal) -> None:
        """Whether the tile command is offered: all its products are there."""
        m.d.comb += offering.eq(running & (step == PRODUCTS))

    def _walk(self, m: Module, taken: Value) -> Value:
        """Counters of the six loops; sets the load and free flags; returns "this is the last"."""
        fresh, current = self.layer.payload, self.current
        starting = self.layer.valid & self.layer.ready
        counts = {loop: f"{loop}_tiles" for loop in LOOPS} | {"group": "groups"}
        left = {loop: Signal(24, name=f"{loop}_left") for loop in LOOPS}
        last = {loop: Signal(name=f"{loop}_last") for loop in LOOPS}
        outer = current.filters_outer
        pixel_last = last["column"] & last["row"] & last["image"]
        pixel = Mux(outer, last["channel"], last["channel"] & last["filter"])
        filters = Mux(outer, last["channel"] & pixel_last, last["channel"])
        group = last["channel"] & last["filter"] & pixel_last
        turns: dict[str, Value] = {
            "channel": Value.cast(1),
            "filter": filters,
            "column": pixel,
            "row": pixel & last["column"],
            "image": pixel & last["column"] & last["row"],
            "group": group,
        }
        for loop in LOOPS:
            with m.If(starting):
                m.d.sync += left[loop].eq(fresh[counts[loop]])
            with m.Elif(taken & turns[loop]):
                m.d.sync += left[loop].eq(Mux(last[loop], current[counts[loop]], left[loop] - 1))
            turned = taken & turns[loop]
            self._mark_last(m, last[loop], left[loop], (starting, fresh[counts[loop]]), turned)
        self.last, self.first_channel = last, left["channel"] == current.channel_tiles
        self._windows(m, taken, turns)
        self._loads(m, starting, taken, turns)
        return group & last["group"]

    def _mark_last(
        self, m: Module, last: Signal, left: Signal, start: tuple[Value, Value], turned: Value
    ) -> None:
        """Whether one turn of a loop is left.

        start: a layer begins, with so many turns; turned: a turn ends in this cycle.
        """
        m.d.comb += last.eq(left == 1)

    def _loads(self, m: Module, starting: Value, taken: Value, turns: dict[str, Value]) -> None:
        """Whether the tile is loaded, and behind it freed: where its indices change."""
        current = self.current
        pixel, filters, group = turns["column"], turns["filter"], turns["group"]
        one_pixel_tile = (
            (current.image_tiles == 1) & (current.row_tiles == 1) & (current.column_tiles == 1)
        )
        channel_changes = current.channel_tiles != 1
        new = {
            "ifmap": channel_changes | (pixel & ~one_pixel_tile) | group,
            "weight": channel_changes | (filters & (current.filter_tiles != 1)) | group,
        }
        for operand, changes in new.items():
            load = Signal(name=f"load_{operand}")
            m.d.comb += [
                self.tile.payload[f"load_{operand}"].eq(load),
                self.tile.payload[f"free_{operand}"].eq(changes),
            ]
            with m.If(starting):
                m.d.sync += load.eq(1)
            with m.Elif(taken):
                m.d.sync += load.eq(changes)

    def _windows(self, m: Module, taken: Value, turns: dict[str, Value]) -> None:
        """The ifmap rows and columns under the tile's windows, cut at the ifmap's edges."""
        fresh, current = self.layer.payload, self.current
        self.size: dict[str, Signal] = {}
        self.start: dict[str, Signal] = {}
        for axis, extent in (("row", "height"), ("column", "width")):
            window = Signal(signed(26), name=f"{axis}_window")
            with m.If(self.layer.valid & self.layer.ready):
                m.d.sync += window.eq(fresh[f"{axis}_window"])
            with m.Elif(taken & turns[axis]):
                m.d.sync += window.eq(
                    Mux(
                        self.last[axis],
                        current[f"{axis}_window"],
                        window + current[f"{axis}_advance"],
                    )
                )
            self.size[axis], self.start[axis] = self._clip(m, axis, window, current[extent])

    def _clip(self, m: Module, axis: str, window: Signal, extent: Value) -> tuple[Signal, Signal]:
        """Elements from a window to its span's end inside 0 … extent − 1, at least one; and where
        the window begins, seen from the first of them."""
        low, high = Signal(signed(27), name=f"{axis}_low"), Signal(signed(27))
        edge, end = Signal(signed(27)), Signal(signed(27))
        m.d.comb += [
            edge.eq(extent - 1),
            end.eq(window + self._pick(f"{axis}_span", axis)),
            low.eq(Mux(window < 0, 0, Mux(window > edge, edge, window))),
            high.eq(Mux(end < low, low, Mux(end > edge, edge, end))),
        ]
        size = Signal(24, name=f"{axis}_size")
        start = Signal(signed(26), name=f"{axis}_start")
        m.d.comb += [size.eq(high - low + 1), start.eq(window - low)]
        return size, start

    def _pick(self, field: str, loop: str) -> Value:
        """The full size, or the last one in a loop's last turn."""
        full, last = self.current[f"{field}_full"], self.current[f"{field}_last"]
        return Mux(self.last[loop], last, full)

    def _pick_pixels(self, field: str) -> Value:
        """The size for the image, row and column classes of the tile."""
        choice = Array(self.current[f"{field}_{sizes}"] for sizes in PIXEL_SIZES)
        return choice[Cat(self.last["column"], self.last["row"], self.last["image"])]

    def _multiply(self, m: Module, step: Signal) -> dict[str, Signal]:
        """One product a step, kept in the step after; the last stays while the tile is offered."""
        current = self.current
        self.pitch, self.ifmap_elements, self.product = Signal(26), Signal(26), Signal(signed(30))
        blocks = self._pick_pixels("blocks" if self.blocks else "pixels")
        channels = self._pick("channels", "channel")
        steps = self._pick("filter_steps", "filter")
        kept = {
            "element_start": Signal(signed(26)),
            "row_step": Signal(26),
            "address_start": Signal(signed(28)),
            "tap_step": Signal(26),
            "image_step": Signal(26),
            "weight_words": Signal(24),
        }
        plan: tuple[tuple[Signal, Value, Value], ...] = (
            (self.pitch, self.size["column"], channels),
            (kept["element_start"], self.start["column"], channels),
            (kept["row_step"], current.row_stride, self.pitch),
            (kept["address_start"], self.start["row"], self.pitch),
            (kept["tap_step"], current.tap_rows, self.pitch),
            (kept["image_step"], self.size["row"], self.pitch),
            (kept["weight_words"], self._pick("step_words", "channel"), steps),
            (self.ifmap_elements, self._pick("images", "image"), kept["image_step"]),
            (self.product, blocks, steps),
        )
        a, b = Signal(signed(27)), Signal(26)
        with m.Switch(step):
            for number, (_, left, right) in enumerate(plan):
                with m.Case(number):
                    m.d.comb += [a.eq(left), b.eq(right)]
            with m.Default():
                m.d.comb += [a.eq(0), b.eq(0)]
        with m.If(step != PRODUCTS):
            m.d.sync += self.product.eq(a * b)
        for number, (target, _, _) in enumerate(plan[:-1]):
            with m.If(step == number + 1):
                m.d.sync += target.eq(self.product)
        return kept

    def _fill(self, m: Module, kept: dict[str, Signal]) -> None:
        """The tile command, from the loops, the picks and the products."""
        current, tile = self.current, self.tile.payload
        shift = (self.lanes - 1).bit_length()
        last_k = self.last["channel"]
        steps = self._pick("filter_steps", "filter")
        copied = ["row_stride", "taps", "tap_rows", "runs", "relu", "multiplier", "shift"]
        copied += ["row_words"] if self.gathers else []
        m.d.comb += [tile[name].eq(current[name]) for name in copied]
        m.d.comb += [tile[name].eq(value) for name, value in kept.items()]
        m.d.comb += [
            tile.first_k.eq(self.first_channel),
            tile.last_k.eq(last_k),
            tile.has_bias.eq(current.has_bias & last_k),
            tile.bias_words.eq(Mux(current.has_bias & last_k, steps, 0)),
            tile.filter_steps.eq(steps),
            tile.step_lanes.eq(self._pick("step_lanes", "filter")),
            tile.ifmap_words.eq((self.ifmap_elements + self.lanes - 1) >> shift),
            tile.output_rows.eq(self.product),
            tile.pixels.eq(self._pick_pixels("pixels")),
            tile.pixel_rows.eq(self._pick("pixel_rows", "row")),
            tile.pixel_columns.eq(self._pick("pixel_columns", "column")),
            tile.column_step.eq(self._pick("column_step", "channel")),
            tile.run_step.eq(self._pick("run_step", "channel")),
            tile.run_length.eq(self._pick("run_length", "channel")),
            tile.pitch.eq(self.pitch),
            tile.height.eq(self.size["row"]),
            tile.row_start.eq(self.start["row"]),
        ]
