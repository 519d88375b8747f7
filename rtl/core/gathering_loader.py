"""A loader that packs kept units before the ifmap scratchpad: the twin of `archsim.gather`.

Contract: `docs/contracts/gather.md`.
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from archsim.gather import GatherUnit
from rtl.core.countdown import countdown_flags
from rtl.core.credits import Credits
from rtl.core.gather import LanePacker
from rtl.hierarchy import place

GATHER_LAYOUT = data.StructLayout({"words": 24, "pixels": 24, "row_words": 16})
"""A load: its words where rows lie as they are; where they are gathered, rows and their words."""


class GatheringLoader(wiring.Component):
    """write_data[n] = word[n], or the kept lanes of all words, packed, into alternating halves.

    A load of row_words = 0 is words as they are.  Another is ⌈row_words / bits of a lane⌉ words of
    flags, then `pixels` rows of row_words words; lanes whose flag is set are packed across rows,
    and the load's last word is filled up with zeros.
    Latency: a word crosses, and is written a cycle later; what is left over at a load's end, two
    cycles later.  `loaded` is two cycles behind the last word in any case.  Throughput: a word a
    cycle, one idle cycle between tiles.  Back-pressure: word.ready is low while no half is free.

    ahead: what is left, and whether a half is free, is compared a word ahead; in the same cycles.

    Members
    -------
    As of a `Loader`; takes_flags, takes_word: a word of flags, of a gathered row, crosses.
    """

    command: stream.Interface
    word: stream.Interface
    free: Signal
    loaded: Signal
    write: Signal
    write_half: Signal
    write_address: Signal
    write_data: Signal
    takes_flags: Signal
    takes_word: Signal

    def __init__(self, *, unit: GatherUnit, depth: int, ahead: bool = False) -> None:
        self.unit = unit
        self.ahead = ahead
        word_bits = unit.lanes * unit.lane_bits
        super().__init__(
            {
                "command": In(stream.Signature(GATHER_LAYOUT)),
                "word": In(stream.Signature(word_bits)),
                "free": In(1),
                "loaded": Out(1),
                "write": Out(1),
                "write_half": Out(1),
                "write_address": Out(range(max(depth, 2))),
                "write_data": Out(word_bits),
                "takes_flags": Out(1),
                "takes_word": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        done, row_word, head = Signal(), Signal(), Signal()
        self.row_words = Signal(range(self.unit.depth + 1))
        heads = self._counts(m, done, row_word, head)
        mask = self._flags(m, row_word, head, heads)
        packer = place(m, "packer", LanePacker, lanes=self.unit.lanes, bits=self.unit.lane_bits)
        ending = Signal()
        m.d.comb += [
            packer.take.eq(row_word),
            packer.last.eq(done),
            packer.mask.eq(mask),
            packer.word.eq(self.word.payload),
            self.write.eq(packer.write),
            self.write_data.eq(packer.data),
        ]
        m.d.sync += [ending.eq(done), self.loaded.eq(ending)]
        with m.If(self.write):
            m.d.sync += self.write_address.eq(self.write_address + 1)
        with m.If(self.loaded):
            m.d.sync += [self.write_address.eq(0), self.write_half.eq(~self.write_half)]
        return m

    def _counts(self, m: Module, done: Signal, row_word: Signal, head: Signal) -> Signal:
        """What is left of a load; returns the words of flags that are to come."""
        unit, fresh = self.unit, self.command.payload
        ahead = {"ahead": True} if self.ahead else {}
        free_halves = place(m, "free_halves", Credits, initial=2, limit=2, **ahead)
        left, heads = Signal(24), Signal(range(unit.list_words + 1))
        self.left, self.at = left, Signal(range(max(unit.depth, 2)))
        gathers, take, row_last = Signal(), Signal(), Signal()
        starts = self.command.valid & self.command.ready
        count = Mux(fresh.row_words == 0, fresh.words, fresh.pixels)
        some, last = countdown_flags(
            m, left, start=starts, count=count, turn=row_word & row_last, ahead=self.ahead
        )
        shift = (unit.lane_bits - 1).bit_length()
        m.d.comb += [
            free_halves.give.eq(self.free),
            free_halves.take.eq(done),
            self.command.ready.eq(~some),
            self.word.ready.eq(some & free_halves.available),
            take.eq(self.word.valid & self.word.ready),
            gathers.eq(self.row_words != 0),
            head.eq(take & (heads != 0)),
            row_word.eq(take & (heads == 0)),
            row_last.eq(~gathers | (self.at + 1 == self.row_words)),
            done.eq(row_word & row_last & last),
            self.takes_flags.eq(head),
            self.takes_word.eq(row_word & gathers),
        ]
        with m.If(starts):
            m.d.sync += [
                left.eq(count),
                self.row_words.eq(fresh.row_words),
                heads.eq((fresh.row_words + (unit.lane_bits - 1)) >> shift),
            ]
        with m.If(head):
            m.d.sync += heads.eq(heads - 1)
        self.next_at = Signal.like(self.at)
        m.d.comb += self.next_at.eq(self.at)
        with m.If(row_word):
            m.d.comb += self.next_at.eq(Mux(row_last, 0, self.at + 1))
            with m.If(row_last):
                m.d.sync += left.eq(left - 1)
        m.d.sync += self.at.eq(self.next_at)
        return heads

    def _flags(self, m: Module, row_word: Signal, head: Signal, heads: Signal) -> Value:
        """The flags of the word that crosses; all are set where rows lie as they are."""
        unit = self.unit
        shift = (unit.lane_bits - 1).bit_length()
        m.submodules.list = store = Memory(
            shape=unit.lanes * unit.lane_bits, depth=max(unit.list_words, 2), init=[]
        )
        write = store.write_port()
        read = store.read_port(transparent_for=(write,))
        place_in_list, mask = Signal(range(max(unit.list_words, 2))), Signal(unit.lanes)
        with m.If(head):
            m.d.sync += place_in_list.eq(Mux(heads == 1, 0, place_in_list + 1))
        m.d.comb += [
            write.addr.eq(place_in_list),
            write.data.eq(self.word.payload),
            write.en.eq(head),
            read.addr.eq(self.next_at >> shift),
            mask.eq(read.data.word_select(self.at[:shift], unit.lanes)),
        ]
        every = (1 << unit.lanes) - 1
        return Mux(self.row_words == 0, every, mask)


__all__ = ["GATHER_LAYOUT", "GatheringLoader"]
