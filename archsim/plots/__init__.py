"""Figures of a result, for notebooks and for the report (`archsim.report`).

result_plots   `ResultPlots`: what `result.plot` is, one method a figure
layer_bars     one bar a layer: cycles, utilisation, traffic, energy
component_bars one bar a component: energy, area, bytes in and out of memories
over_time      where the cycles went in the course of the run
occupancy      how busy every PE is, in the array and over time; pe_maps of sparse machines
gantt          what each port and unit does for each tile
breakdown      where each joule and each mm² goes, as areas
compared       `ComparisonPlots`: designs side by side
free_room      where a point's name may stand
roofline       MACs a cycle over MACs a byte, under the design's limits
axes           what all figures share: layout, title, legend, texts of marks
shades         shares as shades of one colour
palette        colours
units          units in which figures are read well, and numbers as texts
"""

from archsim.plots.axes import Layout
from archsim.plots.palette import CAUSE_COLOURS, GROUP_COLOURS, PORT_COLOURS
from archsim.plots.result_plots import ResultPlots

__all__ = ["CAUSE_COLOURS", "GROUP_COLOURS", "PORT_COLOURS", "Layout", "ResultPlots"]
