"""The figures of one result: `result.plot.cycles()` and its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archsim.plots.axes import NOTEBOOK, Layout
from archsim.plots.component_bars import ComponentBars
from archsim.plots.layer_bars import LayerBars
from archsim.plots.occupancy import OccupancyPlot
from archsim.plots.over_time import ActivityPlot
from archsim.plots.pe_maps import PeMaps
from archsim.plots.roofline import RooflinePlot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from archsim.energy_account import EnergyAccount
    from archsim.machine.over_time import OverTime
    from archsim.occupancy import Occupancy
    from archsim.result import NetworkResult
    from energy_models.technology import Technology


@dataclass(frozen=True)
class ResultPlots:
    """Figures of one `NetworkResult`.

    Layers stand in the order of the network; vector work takes no cycles of the array and is left
    out.  Each figure is drawn on `ax`, or on a new figure, and returned as matplotlib's Axes.
    Where energy or area is shown, `technology` is a name, a TOML file, a `Technology`, or the
    account of this result, if it is at hand; None is the default technology.
    """

    result: NetworkResult
    layout: Layout = NOTEBOOK

    def cycles(self, ax: Axes | None = None) -> Axes:
        """Cycles of every layer, stacked by where they went; the sums are the layers' cycles."""
        return self._layers.cycles(ax)

    def utilization(self, ax: Axes | None = None) -> Axes:
        """Useful MACs over possible ones, in percent, and the mean over all cycles as a line."""
        return self._layers.utilization(ax)

    def traffic(self, ax: Axes | None = None) -> Axes:
        """Bytes of every layer across each port of the core, stacked."""
        return self._layers.traffic(ax)

    def activity(self, over_time: OverTime | None = None, ax: Axes | None = None) -> Axes:
        """Where the cycles went over time, with the utilisation of the layers as a line.

        over_time: bins of `archsim.tiled.timeline.binned`; without them every layer is one bin.
        """
        return ActivityPlot(result=self.result, layout=self.layout).draw(over_time, ax)

    def pes(self, layer: str | Occupancy | None = None, ax: Axes | None = None) -> Axes:
        """How busy every PE is, as a map of the array: of one layer, or of all.

        Of a dense machine the share of cycles in which each PE does a useful MAC, of a sparse one
        the load, the bank conflicts and the idle cycles.  layer: a name, or an
        `archsim.occupancy.Occupancy` that is at hand.  Raises `InputError` for other names.
        """
        from archsim.occupancy import Occupancy

        if not isinstance(layer, Occupancy) and any(one.per_pe for one in self.result.layers):
            return PeMaps(result=self.result, layout=self.layout).draw(layer, ax)
        return self._occupancy.array(self._busy(layer), ax)

    def pes_over_time(self, layer: str | Occupancy | None = None, ax: Axes | None = None) -> Axes:
        """How busy the PEs of each row and of each column are, over the cycles of the run.

        layer: as for `pes`.  A product counts when its moving word enters the array.  Of a sparse
        machine every PE is a line, and every layer a span of time.
        """
        return self._occupancy.over_time(self._busy(layer), ax)

    def gantt(
        self,
        layer: str | None = None,
        *,
        tiles: slice | range | None = None,
        cycles: tuple[int, int] | None = None,
        around: int | None = None,
        most: int | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """What each port and unit does for each tile of a layer, in cycles from its start.

        layer: its name; the one of most cycles.  At most one of tiles (numbers as Python's slices
        take them: `slice(-8, None)` is the last eight), cycles (first, end) and around (a cycle)
        says what is shown, else the first tiles are.  most: tiles at most; the title says how many
        there are.  Raises `InputError` for a layer that is not walked by tiles.
        """
        from archsim.plots.gantt import GanttPlot, Window

        window = Window(tiles=tiles, cycles=cycles, around=around, most=most)
        return GanttPlot(result=self.result, layout=self.layout).draw(layer, window, ax)

    def roofline(self, ax: Axes | None = None) -> Axes:
        """MACs a cycle over MACs an off-chip byte: each layer under the roofs of the design."""
        return RooflinePlot(result=self.result, layout=self.layout).draw(ax)

    def memory_bytes(self, ax: Axes | None = None) -> Axes:
        """Bytes read from and written to every memory, off-chip and on."""
        return self._components.memory_bytes(ax)

    def energy(
        self, technology: EnergyAccount | Technology | str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Energy of every layer, stacked by group of components; the sums are the layers'."""
        return self._layers.energy(self._account(technology), ax)

    def energy_by_component(
        self, technology: EnergyAccount | Technology | str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Energy of every component in the whole network, the largest first."""
        return self._components.energy(self._account(technology), ax)

    def area(
        self, technology: EnergyAccount | Technology | str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Area of every component, the largest first."""
        return self._components.area(self._account(technology), ax)

    def energy_map(
        self, technology: EnergyAccount | Technology | str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Where each joule goes: an area for each component, in rows of groups.

        The areas are to the whole as the energies are to the network's.
        """
        from archsim.plots.breakdown import Breakdown

        account = self._account(technology)
        return Breakdown(result=self.result, layout=self.layout).energy(account, ax)

    def area_map(
        self, technology: EnergyAccount | Technology | str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Where each mm² goes: an area for each component, in rows of groups.

        Raises `InputError` if the technology has no areas.
        """
        from archsim.plots.breakdown import Breakdown

        account = self._account(technology)
        return Breakdown(result=self.result, layout=self.layout).area(account, ax)

    def _busy(self, layer: str | Occupancy | None) -> Occupancy:
        from archsim.occupancy import Occupancy, occupancy

        return layer if isinstance(layer, Occupancy) else occupancy(self.result, layer)

    @property
    def _occupancy(self) -> OccupancyPlot:
        return OccupancyPlot(result=self.result, layout=self.layout)

    @property
    def _layers(self) -> LayerBars:
        return LayerBars(result=self.result, layout=self.layout)

    @property
    def _components(self) -> ComponentBars:
        return ComponentBars(result=self.result, layout=self.layout)

    def _account(self, technology: EnergyAccount | Technology | str | None) -> EnergyAccount:
        from archsim.energy import account
        from archsim.energy_account import EnergyAccount

        if isinstance(technology, EnergyAccount):
            return technology
        return account(self.result) if technology is None else account(self.result, technology)
