"""The boards that a bitstream can be built for: their chips, clocks, and where their pins are told.

Pins are those of amaranth-boards, which knows many more boards; these have a serial port that a
host can speak to, and tools that come in packages.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from archsim.errors import InputError, nearest
from fpga.devices import DEVICES, Device
from rtl.toolchain import ToolchainError

__all__ = ["BOARDS", "LACKING", "Board", "board_named"]

FASTEST_HZ = 25e6
"""A board's faster clock is divided until it is no faster, unless another divisor is asked for."""


@dataclass(frozen=True, kw_only=True)
class Board:
    """platform: module and class in amaranth_boards. device: of `fpga.devices`, for first looks;
    speed and package are the board's own. clock_hz: of its oscillator.
    """

    name: str
    says: str
    platform: tuple[str, str]
    device: str
    clock_hz: float

    @property
    def chip(self) -> Device:
        """What is on the chip."""
        return DEVICES[self.device]

    @property
    def divisor(self) -> int:
        """What the clock is divided by unless another divisor is asked for: a power of two."""
        divisor = 1
        while self.clock_hz / divisor > FASTEST_HZ:
            divisor *= 2
        return divisor

    def open(self) -> Any:
        """Its platform; raises `ToolchainError` if amaranth-boards is not installed."""
        if importlib.util.find_spec("amaranth_boards") is None:
            raise ToolchainError(
                "amaranth-boards is missing; install it with: pip install 'archsim[fpga]'"
            )
        module, name = self.platform
        return getattr(importlib.import_module(f"amaranth_boards.{module}"), name)()


def _ulx3s(size: str) -> Board:
    return Board(
        name=f"ulx3s-{size}",
        says=f"Radiona ULX3S with an ECP5 {size}",
        platform=("ulx3s", f"ULX3S_{size[:-1]}F_Platform"),
        device=size,
        clock_hz=25e6,
    )


BOARDS: Mapping[str, Board] = {
    board.name: board
    for board in (
        _ulx3s("25k"),
        _ulx3s("45k"),
        _ulx3s("85k"),
        Board(
            name="ecp5-evn",
            says="Lattice ECP5-5G Evaluation Board",
            platform=("ecp5_5g_evn", "ECP55GEVNPlatform"),
            device="85k",
            clock_hz=12e6,
        ),
        Board(
            name="versa-ecp5",
            says="Lattice ECP5 Versa Development Board",
            platform=("versa_ecp5", "VersaECP5Platform"),
            device="45k",
            clock_hz=100e6,
        ),
        Board(
            name="icebreaker",
            says="1BitSquared iCEBreaker, iCE40 UP5K",
            platform=("icebreaker", "ICEBreakerPlatform"),
            device="up5k",
            clock_hz=12e6,
        ),
        Board(
            name="hx8k-evn",
            says="Lattice iCE40-HX8K Breakout Board",
            platform=("ice40_hx8k_b_evn", "ICE40HX8KBEVNPlatform"),
            device="hx8k",
            clock_hz=12e6,
        ),
        Board(
            name="tang-nano",
            says="Sipeed Tang Nano, Gowin GW1N-1",
            platform=("tang_nano", "TangNanoPlatform"),
            device="gw1n-1",
            clock_hz=24e6,
        ),
        Board(
            name="tang-nano-9k",
            says="Sipeed Tang Nano 9K, Gowin GW1NR-9",
            platform=("tang_nano_9k", "TangNano9kPlatform"),
            device="gw1nr-9",
            clock_hz=27e6,
        ),
        Board(
            name="tang-primer-20k",
            says="Sipeed Tang Primer 20K, Gowin GW2A-18",
            platform=("tang_primer_20k", "TangPrimer20kPlatform"),
            device="gw2a-18",
            clock_hz=27e6,
        ),
    )
}
"""By name."""

LACKING: Mapping[str, str] = {
    "tang-mega-138k": "a Gowin GW5AST-138, whose part Amaranth 0.5.10 refuses (GowinPlatform knows "
    "GW1N and GW2A), and for which yosys 0.70 finds no multipliers",
}
"""Boards that amaranth-boards knows and no bitstream is built for, by name: what is on them, and
which step lacks what."""

_SHORT = {"ulx3s": "ulx3s-85k"}


def board_named(name: str) -> Board:
    """Raises `InputError` for an unknown board, and for one of `LACKING` with the reason."""
    name = _SHORT.get(name, name)
    if name in LACKING:
        raise InputError(
            f"no bitstream is built for board {name}: it has {LACKING[name]}; board must be one of "
            f"{', '.join(BOARDS)}"
        )
    if name not in BOARDS:
        near = nearest(name, (*_SHORT, *BOARDS, *LACKING))
        raise InputError(f"board must be one of {', '.join(BOARDS)}, not {name!r}; {near}")
    return BOARDS[name]
