"""The figures of one result: `result.plot.cycles()` and its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archsim.plots.axes import NOTEBOOK, Layout
from archsim.plots.component_bars import ComponentBars
from archsim.plots.layer_bars import LayerBars
from archsim.plots.over_time import ActivityPlot
from archsim.plots.pe_maps import PeMaps
from archsim.plots.roofline import RooflinePlot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from archsim.energy import EnergyAccount
    from archsim.result import NetworkResult
    from archsim.timeline import OverTime
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

        over_time: bins of `archsim.timeline.binned`; without them every layer is one bin.
        """
        return ActivityPlot(result=self.result, layout=self.layout).draw(over_time, ax)

    def pes(self, layer: str | None = None, ax: Axes | None = None) -> Axes:
        """Load, bank conflicts and idle cycles of every PE, of a layer or of all.

        Raises `InputError` where the design's PEs all do the same, so that none has its own.
        """
        return PeMaps(result=self.result, layout=self.layout).draw(layer, ax)

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

    @property
    def _layers(self) -> LayerBars:
        return LayerBars(result=self.result, layout=self.layout)

    @property
    def _components(self) -> ComponentBars:
        return ComponentBars(result=self.result, layout=self.layout)

    def _account(self, technology: EnergyAccount | Technology | str | None) -> EnergyAccount:
        from archsim.energy import EnergyAccount, account

        if isinstance(technology, EnergyAccount):
            return technology
        return account(self.result) if technology is None else account(self.result, technology)
