"""The FPGAs that a design can be placed on, and what is on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archsim.errors import nearest, require, require_rate, require_whole

__all__ = ["DEVICES", "FAMILIES", "Device", "Target"]


@dataclass(frozen=True, kw_only=True)
class Device:
    """A chip and how the tools are told of it.

    luts: look-up tables of 4 inputs. block_rams: of block_ram_bits each. dsps: multipliers, 18 × 18
    on ECP5, 16 × 16 on iCE40, 9 × 9 on Gowin, where two make one of 18 × 18. synthesis: options of
    yosys; placement: of nextpnr. pins: of clock, reset, input and output of a unit that is placed,
    where nextpnr wants them said. lacking_flip_flops: how many fewer than look-up tables there are.
    abc9: script of yosys' mapper, if not its own.
    """

    name: str
    family: str
    luts: int
    block_rams: int
    block_ram_bits: int
    dsps: int
    synthesis: tuple[str, ...]
    placement: tuple[str, ...]
    pins: tuple[str, ...] = ()
    lacking_flip_flops: int = 0
    abc9: str = ""

    @property
    def flip_flops(self) -> int:
        """One beside each look-up table, but on Gowin, where every fourth has none."""
        return self.luts - self.lacking_flip_flops

    @property
    def products(self) -> int:
        """Products that its multipliers hold at most: on iCE40 two of 8 bits each."""
        return 2 * self.dsps if self.family == "ice40" else self.dsps

    @property
    def told(self) -> tuple[str, ...]:
        """Passes of yosys in front of its mapping."""
        return (f'scratchpad -set abc9.script "{self.abc9}"',) if self.abc9 else ()

    def multiplying(self, dsps: bool) -> tuple[str, ...]:
        """Options of yosys with which products are the chip's multipliers, or are not."""
        if self.family == "ice40":
            return ("-dsp",) if dsps else ()
        return () if dsps else ("-nodsp",)


_SLOW_WIRES = "+&scorr;&sweep;&dc2;&dch,-f,-r;&ps;&if,-W,900,-v;&mfs"
"""What `abc9` does anyway, but for a wire of 900 ps.

`synth_ecp5` says 300, where a wire that is placed takes 1.1 to 1.3 ns: whatever begins in a block
RAM, 5.7 ns behind the clock, is then the longest path, and look-up tables are spared on all others.
"""


def _ecp5(name: str, luts: int, block_rams: int, dsps: int) -> Device:
    """Lattice FPGA-DS-02012, table 1.1; speed grade 6, the slowest.

    Multiplexers that join look-up tables are left out: with them Boveda's decompressor takes up to
    2.5 times the look-up tables, and is not faster (benchmarks/compression_fpga.md).
    """
    return Device(
        name=name,
        family="ecp5",
        luts=luts,
        block_rams=block_rams,
        block_ram_bits=18 * 1024,
        dsps=dsps,
        synthesis=("-nowidelut",),
        abc9=_SLOW_WIRES,
        placement=(f"--{name}", "--package", "CABGA381", "--speed", "6"),
    )


def _ice40(name: str, luts: int, block_rams: int, dsps: int, package: str) -> Device:
    """Lattice FPGA-DS-02029 (HX) and FPGA-DS-02008 (UltraPlus)."""
    return Device(
        name=name,
        family="ice40",
        luts=luts,
        block_rams=block_rams,
        block_ram_bits=4 * 1024,
        dsps=dsps,
        synthesis=("-device", name[0]) if name.startswith("u") else ("-device", name[:2]),
        placement=(f"--{name}", "--package", package),
    )


def _gowin(
    name: str, counts: tuple[int, int, int], part: str, family: str, pins: tuple[str, ...]
) -> Device:
    """Gowin DS100 (GW1N), DS117 (GW1NR) and DS102 (GW2A); counts: look-up tables, block RAMs,
    multipliers of 9 × 9.  Part and family are the boards'."""
    luts, block_rams, dsps = counts
    series = family.partition("-")[0].lower()
    return Device(
        name=name,
        family="gowin",
        luts=luts,
        block_rams=block_rams,
        block_ram_bits=18 * 1024,
        dsps=dsps,
        synthesis=("-family", series),
        placement=("--device", part, "--vopt", f"family={family}"),
        pins=pins,
        lacking_flip_flops=luts // 4,
    )


DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        _ecp5("25k", 24_288, 56, 28),
        _ecp5("45k", 43_848, 108, 72),
        _ecp5("85k", 83_640, 208, 156),
        _ice40("hx1k", 1_280, 16, 0, "tq144"),
        _ice40("hx8k", 7_680, 32, 0, "ct256"),
        _ice40("up5k", 5_280, 30, 8, "sg48"),
        _gowin("gw1n-1", (1_152, 4, 0), "GW1N-LV1QN48C6/I5", "GW1N-1", ("35", "15", "14", "18")),
        _gowin(
            "gw1nr-9", (8_640, 26, 40), "GW1NR-LV9QN88PC6/I5", "GW1N-9C", ("52", "3", "4", "10")
        ),
        _gowin(
            "gw2a-18",
            (20_736, 46, 96),
            "GW2A-LV18PG256C8/I7",
            "GW2A-18C",
            ("H11", "T13", "N10", "M11"),
        ),
    )
}

FAMILIES: Mapping[str, str] = {"ecp5": "85k", "ice40": "hx8k", "gowin": "gw2a-18"}
"""Families, each with the device that is meant if none is named."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a unit is placed, and how.

    device: "" means the family's largest. clock_hz: what the tools aim at; a unit that misses it
    is reported all the same. seed: of the placer; the same seed gives the same answer.
    Raises `InputError` for a family or a device that is not known, and for one of another family.
    """

    family: str = "ecp5"
    device: str = ""
    clock_hz: float = 100e6
    seed: int = 1

    def __post_init__(self) -> None:
        require(
            self.family in FAMILIES,
            f"family must be one of {', '.join(FAMILIES)}, not {self.family!r}; "
            f"{nearest(self.family, FAMILIES)}",
        )
        known = [one.name for one in DEVICES.values() if one.family == self.family]
        require(
            self.device in ("", *known),
            f"device must be one of {', '.join(known)} for {self.family}, not {self.device!r}",
        )
        require_rate(clock_hz=self.clock_hz)
        require_whole(0, "not be negative", seed=self.seed)

    @property
    def chip(self) -> Device:
        """The device itself."""
        return DEVICES[self.device or FAMILIES[self.family]]
