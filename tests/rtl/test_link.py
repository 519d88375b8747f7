"""The byte link: frames, what the core does with them, and a host's session on a bad wire."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator
from hypothesis import given
from hypothesis import strategies as st

from archsim.layer.intake import Drawing
from archsim.machine.design import Design
from archsim.machine.registry import load_design, with_settings
from fpga.host.network import BoardError, layer_on_board
from fpga.host.session import LinkError, Session
from fpga.units import TOP, unit_verilog
from rtl.benches.byte_board import ByteBoard
from rtl.cases import random_case
from rtl.link.frames import (
    ANSWER,
    PAYLOAD,
    REQUEST,
    Frame,
    Operation,
    Status,
    frame_bytes,
    take_frame,
)
from rtl.link.link_core import LinkCore
from rtl.link.uart import Uart
from workloads.layers import Conv2d

SMALL = [f"{name}_memory.capacity_bytes=64" for name in ("ifmap", "weight", "accumulator")]
DESIGN = with_settings(load_design("edge-16"), ["rows=2", "columns=1", "bias_words=2", *SMALL])
PATIENCE, TIMEOUT = 300, 6000

frames = st.builds(
    Frame, st.integers(0, 255), st.integers(0, 255), st.binary(max_size=40).map(bytes)
)


@given(frames, st.binary(max_size=30), st.binary(max_size=30))
def test_a_frame_is_found_in_noise(frame: Frame, before: bytes, after: bytes) -> None:
    """Unless noise looks like the head of a longer frame, which only more bytes can tell."""
    seen = bytearray(before.replace(b"\x5a", b"") + frame_bytes(ANSWER, frame) + after)
    assert take_frame(ANSWER, seen) == frame
    assert bytes(seen) == after


@given(frames, st.data())
def test_a_damaged_frame_is_none(frame: Frame, data: st.DataObject) -> None:
    """A flipped bit, a lost or a doubled byte: nothing is taken for a frame."""
    whole = bytearray(frame_bytes(ANSWER, frame))
    at = data.draw(st.integers(1, len(whole) - 1))
    fault = data.draw(st.sampled_from(["flip", "lose", "double"]))
    if fault == "flip":
        whole[at] ^= 1 << data.draw(st.integers(0, 7))
    elif fault == "lose":
        del whole[at]
    else:
        whole.insert(at, whole[at])
    found = take_frame(ANSWER, bytearray(whole))
    assert found is None or found == frame  # a doubled last byte hurts nothing


@given(frames, frames)
def test_a_frame_of_which_the_end_is_missing_waits(first: Frame, second: Frame) -> None:
    whole = frame_bytes(ANSWER, first) + frame_bytes(ANSWER, second)
    seen, found = bytearray(), []
    for byte in whole:
        seen.append(byte)
        while (frame := take_frame(ANSWER, seen)) is not None:
            found.append(frame)
    assert found == [first, second]


class BadWire:
    """A board behind a wire that loses, doubles, flips and delays bytes, both ways."""

    def __init__(self, board: ByteBoard, seed: int, share: float) -> None:
        self._board, self._draw, self._share = board, np.random.default_rng(seed), share
        self._late = b""
        self.faults = 0

    def _spoilt(self, data: bytes) -> bytes:
        out = bytearray()
        for byte in data:
            if self._draw.random() >= self._share:
                out.append(byte)
                continue
            self.faults += 1
            fault = self._draw.integers(3)
            if fault == 0:
                out += bytes([byte ^ 1 << int(self._draw.integers(8))])
            elif fault == 1:
                out += bytes([byte, byte])
        return bytes(out)

    def write(self, data: bytes) -> int:
        return self._board.write(self._spoilt(data))

    def read(self, size: int) -> bytes:
        if self._late:
            late, self._late = self._late, b""
            return late
        found = self._spoilt(self._board.read(size))
        if found and self._draw.random() < 2 * self._share:
            self._late = found  # it comes when the host has given up
            return b""
        return found


@pytest.fixture(scope="module")
def verilog() -> str:
    return unit_verilog(LinkCore(design=DESIGN, patience=PATIENCE))


@pytest.fixture
def board(verilog: str) -> Iterator[ByteBoard]:
    with ByteBoard(verilog, top=TOP, timeout=TIMEOUT) as opened:
        yield opened


def _answers(design: Design, count: int) -> list[Any]:
    cases = (random_case(3, number, design, longest_words=300) for number in range(80))
    single = (case.answer() for case in cases if case.layers_in_row == 1 and case.before is None)
    return list(islice(single, count))


@pytest.mark.parametrize("share", [0.0, 0.01])
def test_layers_cross_a_bad_wire(board: ByteBoard, share: float) -> None:
    """Ofmaps and counted actions are the model's; no request is done twice."""
    wire = BadWire(board, 5, share)
    session = Session(wire, DESIGN, tries=60)
    ports = {port.name: port for port in DESIGN.machine_model().ports}
    totals: dict[str, int] = {}
    for answer in _answers(DESIGN, 6):
        packed = {name: port.pack(answer.transfers[name].payload) for name, port in ports.items()}
        ofmap = packed.pop("ofmap")
        assert np.array_equal(session.layer(packed.pop("command"), packed, len(ofmap)), ofmap)
        for name, count in answer.actions.items():
            totals[name] = totals.get(name, 0) + int(count)
    counted = session.counters()
    assert {name: counted[f"count_{name}"] for name in totals if f"count_{name}" in counted}
    for name, count in totals.items():
        assert counted.get(f"count_{name}", count) == count, name
    assert (session.retries > 0) == (share > 0) == (wire.faults > 0)


def _answer(board: ByteBoard, request: Frame) -> Frame | None:
    board.write(frame_bytes(REQUEST, request))
    return take_frame(ANSWER, bytearray(board.read(PAYLOAD + 9)))


def test_what_is_asked_wrongly(board: ByteBoard) -> None:
    """Each is answered with its status; what was there before stays."""
    words = (0x1C).to_bytes(2, "little") + (7).to_bytes(4, "little")  # OFMAP_WORDS
    bad = (0x00).to_bytes(2, "little") + (7).to_bytes(4, "little")  # ID cannot be written
    for number, (operation, payload, status, answer) in enumerate(
        [
            (Operation.HELLO, b"abcd", Status.DONE, b"abcd"),
            (Operation.HELLO, b"abc", Status.LENGTH, b""),
            (9, b"", Status.UNKNOWN, b""),
            (Operation.READ, b"\0", Status.LENGTH, b""),
            (Operation.READ, bytes(PAYLOAD // 2 + 2), Status.LENGTH, b""),
            (Operation.READ, b"\0\0", Status.DONE, b"HCRA"),
            (Operation.READ, b"\0\0\xfc\x0f", Status.REFUSED, b"HCRA"),
            (Operation.WRITE, words + bad + words, Status.REFUSED, b"\1\0"),
            (Operation.WRITE, words + words[:5], Status.LENGTH, b"\1\0"),
            (Operation.READ, b"\x1c\0", Status.DONE, b"\7\0\0\0"),
            (Operation.SEND, b"", Status.LENGTH, b""),
            (Operation.SEND, b"\3", Status.UNKNOWN, b""),
            (Operation.SEND, b"\0\1\2\3", Status.LENGTH, b"\1\0"),
            (Operation.RECEIVE, b"\1", Status.LENGTH, b""),
            (Operation.RECEIVE, b"\1\0", Status.DONE, b""),
            (Operation.RESET, b"\0", Status.LENGTH, b""),
            (Operation.READ, b"\x1c\0", Status.DONE, b"\7\0\0\0"),
            (Operation.RESET, b"", Status.DONE, b""),
            (Operation.READ, b"\x1c\0", Status.DONE, b"\0\0\0\0"),
        ]
    ):
        found = _answer(board, Frame(number, operation, payload))
        assert found == Frame(number, status, answer), (operation, payload)


def test_a_request_is_done_once(board: ByteBoard) -> None:
    """The same number again: the answer again, though the register has changed; HELLO is new."""
    assert _answer(board, Frame(1, Operation.HELLO, b"1234")) == Frame(1, 0, b"1234")
    first = _answer(board, Frame(2, Operation.SEND, b"\0\1\2"))
    assert first == Frame(2, 0, b"\1\0")
    assert _answer(board, Frame(2, Operation.SEND, b"\0\1\2\3\4\5\6")) == first
    assert _answer(board, Frame(3, Operation.SEND, b"\0\1\2\3\4\5\6")) == Frame(3, 0, b"\3\0")
    assert _answer(board, Frame(3, Operation.HELLO, b"new!")) == Frame(3, 0, b"new!")


def test_a_frame_that_stops_is_given_up(board: ByteBoard) -> None:
    whole = frame_bytes(REQUEST, Frame(1, Operation.HELLO, b"1234"))
    for cut in range(1, len(whole)):
        board.write(whole[:cut])
        assert board.read(1) == b""
        assert _answer(board, Frame(2, Operation.HELLO, b"late")) == Frame(2, 0, b"late"), cut
    too_long = bytearray(whole)
    too_long[3:5] = (PAYLOAD + 1).to_bytes(2, "little")
    board.write(bytes(too_long[:5]))
    assert _answer(board, Frame(3, Operation.HELLO, b"next")) == Frame(3, 0, b"next")


def test_queues_are_filled_and_no_further(board: ByteBoard) -> None:
    """Words that find no room stay the host's, in their order."""
    _answer(board, Frame(0, Operation.HELLO, b"0000"))
    taken = []
    for number in range(1, 5):
        words = bytes(PAYLOAD - 2)
        answer = _answer(board, Frame(number, Operation.SEND, b"\0" + words))
        assert answer is not None
        taken.append(int.from_bytes(answer.payload, "little"))
    assert taken[0] == 511
    assert taken[-1] == 0
    assert 511 < sum(taken) < 600


def test_a_session_says_what_is_wrong(board: ByteBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LinkError, match=r"must hold .*columns|must hold .*; it has 0x"):
        Session(board, with_settings(DESIGN, ["off_chip.burst_bytes=32"]))
    session = Session(board, DESIGN)
    with pytest.raises(LinkError, match="answers WRITE with REFUSED"):
        session.write({"ID": 1})
    answer = _answers(DESIGN, 1)[0]
    ports = {port.name: port for port in DESIGN.machine_model().ports}
    packed = {name: port.pack(answer.transfers[name].payload) for name, port in ports.items()}
    count = len(packed.pop("ofmap"))
    command = packed.pop("command")
    with pytest.raises(LinkError, match="stands still with 1 words of its ofmap"):
        session.layer(command, packed, count + 1)
    session.reset()
    with pytest.raises(LinkError, match="stands still"):
        session.layer(command, {**packed, "weight": packed["weight"][:-1]}, count)
    session.reset()
    more = np.vstack([packed["weight"], packed["weight"]])
    with pytest.raises(LinkError, match=r"ended with words left for \{'weight'"):
        while len(more) < 20_000:
            more = np.vstack([more, more])
        session.layer(command, {**packed, "weight": more}, count)
    monkeypatch.setattr(board, "read", lambda size: b"")
    with pytest.raises(LinkError, match="no answer to READ, asked 8 times"):
        session.read("ID")


def test_a_layer_beside_the_model(board: ByteBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(board, DESIGN)
    layer = Conv2d(
        name="conv", channels=3, filters=2, ifmap_height=4, ifmap_width=4, kernel_height=2,
        kernel_width=2,
    )  # fmt: skip
    operands = DESIGN.intake.synthetic(layer, Drawing())
    ofmap, found = layer_on_board(session, layer, operands)
    assert ofmap.shape == (1, 2, 3, 3)
    assert found.actions["ofmap_write"] == len(ofmap.ravel())
    assert found.cycles > sum(found.waits.values()) / len(found.waits) > 0
    whole = session.layer
    monkeypatch.setattr(session, "layer", lambda *words: whole(*words) ^ np.uint8(1))
    with pytest.raises(BoardError, match=r"^conv: 18 of 18 words of the ofmap differ, the first"):
        layer_on_board(session, layer, operands)


@pytest.mark.parametrize("divisor", [4, 5, 16])
def test_bytes_on_a_wire(divisor: int) -> None:
    """Sent and heard by two ends whose clocks' phases differ."""
    m = Module()
    here: Any = Uart(divisor=divisor)
    there: Any = Uart(divisor=divisor)
    m.submodules.here, m.submodules.there = here, there
    m.d.comb += there.rx.eq(here.tx)
    data = bytes([0x00, 0xFF, 0x55, 0xA5, 0x01, 0x80])
    heard = bytearray()

    async def drive(ctx: Any) -> None:
        for byte in data:
            ctx.set(here.sent.payload, byte)
            ctx.set(here.sent.valid, 1)
            await ctx.tick().until(here.sent.ready)
        ctx.set(here.sent.valid, 0)
        await ctx.tick().repeat(12 * divisor)

    async def hear(ctx: Any) -> None:
        ctx.set(there.received.ready, 1)
        async for _, _, valid, byte in ctx.tick().sample(
            there.received.valid, there.received.payload
        ):
            if valid:
                heard.append(byte)

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.add_testbench(hear, background=True)
    simulator.run()
    assert bytes(heard) == data
