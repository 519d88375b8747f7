"""The picture of a placed design."""

from matplotlib.backends.backend_agg import FigureCanvasAgg

from fpga.floor_plan import floor_plan


def test_nothing_of_it_is_cut() -> None:
    """Of a chip that is wider than it is high, with a module of a long name."""
    cells = [["top.core.core.queue_bias.storage", "cell", 3, 4], ["top", "cell", 59, 0]]
    figure = floor_plan({"cells": cells, "columns": 60, "rows": 50})
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (axes,), (legend,) = figure.axes, figure.legends
    box = figure.bbox
    for one in (axes.xaxis.label, axes.yaxis.label, axes.title, legend):
        found = one.get_window_extent()
        assert box.x0 <= found.x0 and found.x1 <= box.x1, one
        assert box.y0 <= found.y0 and found.y1 <= box.y1, one
