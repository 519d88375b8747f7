"""A simulated board: emitted Verilog with a byte link, compiled, stepped as it is spoken to.

It has the interface of pyserial's ports, as far as a session needs it: `write`, `read`, `timeout`.
"""

import ctypes
from collections.abc import Mapping

from rtl.benches.build_cache import build_once
from rtl.benches.handle import Handle
from rtl.benches.verilated_build import VerilogPort, build_key, compiled
from rtl.toolchain import require

__all__ = ["ByteBoard"]

PORTS = [f"{link}__{part}" for link in ("rx", "tx") for part in ("payload", "valid", "ready")]


class ByteBoard(Handle):
    """Module `top` of `verilog`, which has streams of bytes rx and tx, from power-up on.

    timeout: cycles that `read` waits at most.  baud_cycles: cycles a byte takes on the wire, each
    way; 1 is as fast as the core takes them.
    Raises `ToolchainError` if a tool is missing or fails.
    """

    def __init__(
        self, verilog: str, *, top: str = "top", timeout: int = 1 << 19, baud_cycles: int = 1
    ) -> None:
        require("verilator", "perl", "make", "g++")
        key = build_key("board", verilog, top, _TEXT)
        place = build_once("boards", key, lambda work: compiled(work, verilog, top, _wrapper))
        self._code = _typed(ctypes.CDLL(str(place / "core.so")))
        self.hold(self._code.board_new(baud_cycles), self._code.board_delete)
        self.timeout = timeout

    @property
    def cycle(self) -> int:
        """Cycles since power-up."""
        return self._code.board_cycle(self.live)

    def write(self, data: bytes) -> int:
        """Bytes for the board; they cross while `read` lets time pass."""
        self._code.board_write(self.live, bytes(data), len(data))
        return len(data)

    def read(self, size: int) -> bytes:
        """Up to `size` bytes: fewer if `timeout` cycles pass before."""
        room = ctypes.create_string_buffer(size)
        count = self._code.board_read(self.live, room, size, int(self.timeout))
        return room.raw[:count]


def _typed(code: ctypes.CDLL) -> ctypes.CDLL:
    handle, whole = ctypes.c_void_p, ctypes.c_int64
    for name, result, arguments in (
        ("board_new", handle, [whole]),
        ("board_delete", None, [handle]),
        ("board_cycle", whole, [handle]),
        ("board_write", None, [handle, ctypes.c_char_p, whole]),
        ("board_read", whole, [handle, ctypes.c_char_p, whole, whole]),
    ):
        function = getattr(code, name)
        function.restype, function.argtypes = result, arguments
    return code


def _wrapper(ports: Mapping[str, VerilogPort]) -> str:
    text = _TEXT
    for name in ("clk", "rst", *PORTS):
        text = text.replace(f"@{name}@", f"top.{ports[name].member}")
    return text


_TEXT = r"""
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include "Vtop.h"
#include "verilated.h"

void vl_fatal(const char*, int, const char*, const char* message) {
    throw std::runtime_error(message);
}

namespace {
struct Board {
    VerilatedContext context;
    Vtop top{&context};
    std::deque<uint8_t> in, out;
    int64_t cycle = 0, every, next_in = 0, next_out = 0;

    explicit Board(int64_t every_) : every(every_) {
        for (int n = 0; n < 4; ++n) {
            @rst@ = 1;
            step();
        }
        @rst@ = 0;
    }
    void step() {
        @clk@ = 0;
        const bool offer = !in.empty() && cycle >= next_in;
        @rx__valid@ = offer;
        @rx__payload@ = offer ? in.front() : 0xEE;
        @tx__ready@ = cycle >= next_out;
        top.eval();
        const bool taken = offer && @rx__ready@ && !@rst@;
        const bool given = @tx__valid@ && @tx__ready@ && !@rst@;
        const uint8_t byte = @tx__payload@;
        @clk@ = 1;
        top.eval();
        if (taken) { in.pop_front(); next_in = cycle + every; }
        if (given) { out.push_back(byte); next_out = cycle + every; }
        ++cycle;
    }
};
}  // namespace

extern "C" {
void* board_new(int64_t every) { return new Board(every); }
void board_delete(void* board) { delete static_cast<Board*>(board); }
int64_t board_cycle(void* board) { return static_cast<Board*>(board)->cycle; }
void board_write(void* handle, const uint8_t* data, int64_t size) {
    Board& board = *static_cast<Board*>(handle);
    board.in.insert(board.in.end(), data, data + size);
}
int64_t board_read(void* handle, uint8_t* data, int64_t size, int64_t cycles) {
    Board& board = *static_cast<Board*>(handle);
    const int64_t end = board.cycle + cycles;
    while (static_cast<int64_t>(board.out.size()) < size && board.cycle < end) board.step();
    int64_t count = 0;
    for (; count < size && !board.out.empty(); ++count) {
        data[count] = board.out.front();
        board.out.pop_front();
    }
    return count;
}
}
"""
