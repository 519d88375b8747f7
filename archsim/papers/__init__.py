"""Published tables, and ours beside them.

figures    what a paper says (value, unit, where, tolerance, why), and a row of the comparison
evidence   a measured reason: a switch or a count
registry   the papers by name; a new one is a module with `compare()` and a TOML of its figures
stalls     where the cycles of an array went, as hardware counters would attribute them
tpu        Jouppi et al., ISCA 2017 (tpu_shapes, tpu_measure)
scnn       Parashar et al., ISCA 2017: speed-up, utilisation, density sweep (scnn_layers)
scnn_area  Parashar et al., ISCA 2017: area
eyeriss    Chen et al., ISCA 2016, JSSC 2017: where the energy goes (eyeriss_mapping)
mac_area   ratios of arithmetic: a count by hand, Horowitz 2014
vsquant    Dai et al., MLSys 2021: accuracy (vsquant_points, _photos, _words), area and energy
           (vsquant_hardware, _pe, _operands)
"""

from archsim.papers.figures import Comparison, Figure, Row
from archsim.papers.registry import compare, papers

__all__ = ["Comparison", "Figure", "Row", "compare", "papers"]
