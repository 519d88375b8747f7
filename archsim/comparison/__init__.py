"""Saved results side by side.

changes   parameters that are not the same in every design, or in every technology
figures   totals and their parts, with ratios
notes     what makes results hard to compare
results   the whole comparison
"""

from archsim.comparison.changes import Change
from archsim.comparison.figures import ComparedFigure, ratio
from archsim.comparison.results import ComparedLayer, ResultComparison, compare_results

__all__ = [
    "Change",
    "ComparedFigure",
    "ComparedLayer",
    "ResultComparison",
    "compare_results",
    "ratio",
]
