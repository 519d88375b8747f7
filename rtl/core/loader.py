"""A loader: words from a stream into the free half of a scratchpad, a tile at a time."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.core.countdown import countdown_flags
from rtl.core.credits import Credits
from rtl.hierarchy import place


class Loader(wiring.Component):
    """write_data[n] = word[n], n = 0 … words − 1, into alternating halves.

    Latency: a word crosses and is written in the same cycle; a command is taken one cycle before
    its first word.  Throughput: one word a cycle, one idle cycle between tiles.
    Back-pressure: word.ready is low while no half is free.

    ahead: what is left, and whether a half is free, is compared a word ahead; in the same cycles.

    Members
    -------
    command: stream of tile sizes in words; word: the stream; free: a half was given back in this
    cycle; loaded: the last word of a tile is written in this cycle; write, write_half,
    write_address, write_data: to the scratchpad.
    """

    command: stream.Interface
    word: stream.Interface
    free: Signal
    loaded: Signal
    write: Signal
    write_half: Signal
    write_address: Signal
    write_data: Signal

    def __init__(
        self, *, word_bits: int, depth: int, words_bits: int = 24, ahead: bool = False
    ) -> None:
        self.depth = depth
        self.ahead = ahead
        self.words_bits = words_bits
        layout = data.StructLayout({"words": words_bits})
        super().__init__(
            {
                "command": In(stream.Signature(layout)),
                "word": In(stream.Signature(word_bits)),
                "free": In(1),
                "loaded": Out(1),
                "write": Out(1),
                "write_half": Out(1),
                "write_address": Out(range(max(depth, 2))),
                "write_data": Out(word_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ahead = {"ahead": True} if self.ahead else {}
        free_halves = place(m, "free_halves", Credits, initial=2, limit=2, **ahead)
        left, starts = Signal(self.words_bits), self.command.valid & self.command.ready
        words = self.command.payload.words
        some, last = countdown_flags(
            m, left, start=starts, count=words, turn=self.write, ahead=self.ahead
        )
        self.free_halves, self.left, self.last = free_halves, left, last
        m.d.comb += [
            free_halves.give.eq(self.free),
            free_halves.take.eq(self.loaded),
            self.write_data.eq(self.word.payload),
        ]
        m.d.comb += [
            self.command.ready.eq(~some),
            self.word.ready.eq(some & free_halves.available),
            self.write.eq(self.word.valid & self.word.ready),
            self.loaded.eq(self.write & last),
        ]
        with m.If(starts):
            m.d.sync += [left.eq(words), self.write_address.eq(0)]
        with m.If(self.write):
            m.d.sync += [left.eq(left - 1), self.write_address.eq(self.write_address + 1)]
        with m.If(self.loaded):
            m.d.sync += self.write_half.eq(~self.write_half)
        return m
