"""SRAMs, as CACTI sees them.

`SramEstimator` answers for "sram" components from grids of CACTI 7's own figures (`sram_grids`),
which stand in the package: CACTI itself is not needed.  CACTI was configured as hwcomponents-cacti
does it, after Accelergy's plug-in: a memory without tags, organised for least energy × delay² of a
read; only the temperature, which changes nothing but leakage, is 350 K instead of 300 K.

Ports are CACTI's exclusive ports:

read_ports, write_ports = 0, 0   one port that reads or writes, one of them a cycle
read_ports, write_ports = 1, 1   a port that reads and a port that writes, both in one cycle: a cell
                                 with two ports, and about twice the area

Words of 8 to 128 bits are one bank.  Other words are composed, and `Quantity.how` says so:

wider      banks side by side, as few as have words of at most 128 bits, all equal; energy, area
           and leakage are summed.  CACTI takes wider words, but the data bus across its bank grows
           with the square of the width: `benchmarks/sram_fit.md` has both.  No wire outside the
           banks is counted.
narrower   a power law in the word's bits from 1, eight of which stand in a word of 8 bits (an
           access costs what one of 8 bits does, a write has a mask), to 8; never more than
           memories of one bit side by side

A larger memory never costs less than a smaller one: each figure is the least of all banks that are
as large (`Grid.least`), since one may leave words or bits unused.  So a memory of fewer words than
CACTI was asked for (32 of 16 bits and more, 64 of 8) costs what those do: whether registers cost
less is for `energy_models.register_file`.  Banks side by side have wires that are in no figure, and
never cost less than as many whole ones of 128 bits as their word is wider than.  The largest bank
has 32 MiB; larger ones are refused.

Between the grid's points (`sram_grid`) the median error beside CACTI is 1.2 % for reading, 1.0 %
for writing, 0.8 % for area and 0.4 % for leakage; the worst of 400 random banks was 29, 29, 15 and
18 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from energy_models.component import KINDS, Component
from energy_models.errors import EnergyError, require_known
from energy_models.estimator import Quantity
from energy_models.interpolation import power_law
from energy_models.sram_grid import CELLS, FIGURES, Figures, load_grid

NARROWEST_BITS = 8
WIDEST_BITS = 128
PORTS: Mapping[tuple[int, int], str] = {(0, 0): "1rw", (1, 1): "1r1w"}
"""read_ports, write_ports → the grid's name."""

_PORT_TEXT = {"1rw": "one port to read or write", "1r1w": "a port to read, a port to write"}


@dataclass(frozen=True, kw_only=True)
class Banks:
    """`count` equal banks which are one memory; each access is one of them all.

    how: the composition, "" for a memory that is one bank.
    """

    count: int
    word_bits: int
    depth: int
    how: str = ""


def banks_of(word_bits: int, depth: int) -> Banks:
    """The banks that a memory of `depth` words is made of."""
    if word_bits > WIDEST_BITS:
        count = -(-word_bits // WIDEST_BITS)
        each = -(-word_bits // count)
        how = f"{count} banks of {each} bits side by side"
        return Banks(count=count, word_bits=each, depth=depth, how=how)
    if word_bits < NARROWEST_BITS:
        how = f"power law in the word's bits, from 1, stored {NARROWEST_BITS} to a word, to "
        how += f"{NARROWEST_BITS}"
        return Banks(count=1, word_bits=NARROWEST_BITS, depth=depth, how=how)
    return Banks(count=1, word_bits=word_bits, depth=depth)


class SramEstimator:
    """Energy, area and leakage of SRAMs at one of CACTI's nodes: 22, 32, 45, 65 or 90 nm.

    cell: "itrs-lstp", transistors of low standby power, or "itrs-hp", of high performance, for
    cells and periphery alike.
    Raises `EnergyError` for a node or cell without a grid, and names the nearest.
    """

    def __init__(self, *, node_nm: float, cell: str = CELLS[0]) -> None:
        self._grid = load_grid(node_nm, cell)
        self._node_nm = node_nm
        self._cell = cell
        self._found: dict[tuple[str, int, int], tuple[Figures, str]] = {}

    @property
    def name(self) -> str:
        """As a technology names it: "cacti:45"; with other than the default cell, it too."""
        cell = "" if self._cell == CELLS[0] else f":{self._cell}"
        return f"cacti:{self._node_nm:g}{cell}"

    @property
    def node_nm(self) -> float:
        """Technology node."""
        return self._node_nm

    @property
    def voltage_v(self) -> float:
        """The supply that CACTI gives the cell at this node."""
        return self._grid.voltage_v

    def energy_pj(self, component: Component, action: str) -> Quantity:
        """Energy of reading or writing one word.  Raises `EnergyError` outside the grid."""
        known = KINDS["sram"][1]
        require_known(action, known, f"{component.name}: a sram does not {action!r}")
        return self._figure(component, f"{action}_pj")

    def area_um2(self, component: Component) -> Quantity:
        """Area, with all periphery.  Raises `EnergyError` outside the grid."""
        return self._figure(component, "area_um2")

    def leakage_mw(self, component: Component) -> Quantity:
        """Static power of cells and periphery, at 350 K.  Raises `EnergyError` outside the grid."""
        return self._figure(component, "leakage_mw")

    def _figure(self, component: Component, figure: str) -> Quantity:
        ports = _ports_of(component)
        sizes = component.attributes
        banks = banks_of(sizes["word_bits"], sizes["depth"])
        try:
            figures, how = self._least(ports, banks.word_bits, banks.depth)
        except EnergyError as error:
            said = f" ({banks.how})" if banks.how else ""
            raise EnergyError(f"{component.name}: {component.text}{said}: {error}") from None
        source = f"{self._grid.source}, {_PORT_TEXT[ports]}"
        at = FIGURES.index(figure)
        one = Quantity(value=figures[at], source=source, how=how).times(banks.count, banks.how)
        if sizes["word_bits"] < NARROWEST_BITS:
            return replace(one, value=self._narrow(ports, sizes, at))
        return self._no_less(one, ports, banks, at)

    def _least(self, ports: str, word_bits: int, depth: int) -> tuple[Figures, str]:
        """`Grid.least`, once for all figures."""
        key = ports, word_bits, depth
        if key not in self._found:
            self._found[key] = self._grid.least(*key)
        return self._found[key]

    def _narrow(self, ports: str, sizes: Mapping[str, int], at: int) -> float:
        """A figure of words below `NARROWEST_BITS`."""
        word_bits, depth = sizes["word_bits"], sizes["depth"]
        single, whole = (
            self._least(ports, NARROWEST_BITS, words)[0][at]
            for words in (-(-depth // NARROWEST_BITS), depth)
        )
        law = power_law((1, single), (NARROWEST_BITS, whole), word_bits)
        return min(law, word_bits * single)

    def _no_less(self, found: Quantity, ports: str, banks: Banks, at: int) -> Quantity:
        """The figure, or that of one bank less with words of `WIDEST_BITS`."""
        if banks.count == 1:
            return found
        full = (banks.count - 1) * self._least(ports, WIDEST_BITS, banks.depth)[0][at]
        if full <= found.value:
            return found
        held = f"held at {banks.count - 1} of {WIDEST_BITS} bits, which cost more"
        return replace(found.times(1, held), value=full)


def _ports_of(component: Component) -> str:
    if component.kind != "sram":
        raise EnergyError(f"{component.name}: CACTI has figures for sram, not for {component.text}")
    given = component.attributes["read_ports"], component.attributes["write_ports"]
    if given not in PORTS:
        raise EnergyError(
            f"{component.name}: CACTI's grid has no sram with {given[0]} read and {given[1]} write "
            "ports: give 0 and 0 for one port that reads or writes, 1 and 1 for one of each, and "
            "for more readers as many memories that are written alike"
        )
    return PORTS[given]
