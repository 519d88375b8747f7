"""The figures of a study's page, and what filters them, as models of Bokeh.

All figures show one source of points through one filter; `study.js` sets it.  A brush in one figure
chooses the same points in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from bokeh.models import (
    BooleanFilter,
    CDSView,
    ColumnDataSource,
    CustomJS,
    FixedTicker,
    HoverTool,
    MultiSelect,
    NumericInput,
    Range1d,
    RangeSlider,
    Select,
    TabPanel,
    Tabs,
)
from bokeh.plotting import figure

from archsim.plots import palette
from archsim.study_report.shown import FEW, Axis, Shown, columns_of
from archsim.study_report.tables import written

STYLE = """
:host { color: var(--text); }
select.bk-input, input.bk-input {
  background: var(--background); color: var(--text); border-color: var(--rule);
}
select:not([multiple]).bk-input {
  background-image: linear-gradient(45deg, transparent 50%, var(--text) 50%),
    linear-gradient(135deg, var(--text) 50%, transparent 50%);
  background-position: right calc(.5em + 5px) center, right .5em center;
  background-size: 5px 6px; background-repeat: no-repeat;
}
option:checked { background: var(--orange); color: var(--background); }
.bk-tab { color: var(--soft); }
.bk-tab.bk-active { background: var(--raised); color: var(--text); }
"""
"""The page's colours, inside of Bokeh's widgets, whose own arrow of a list is black."""

PAIRS = 6
"""Figures of two objectives, at most."""

HEIGHT = 430

TOOLS = "pan,wheel_zoom,box_zoom,box_select,lasso_select,tap,reset,save"


class StudyFigures:
    """The models of a page, which share one source."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown
        self.columns = columns_of(shown)
        self.source = ColumnDataSource(self.columns)
        self.truths = BooleanFilter()
        self.view = CDSView(filter=self.truths)
        self.fronts: list[dict[str, Any]] = []
        self.background = ColumnDataSource({"xs": [], "ys": [], "number": []})
        self.chosen = ColumnDataSource({"xs": [], "ys": [], "number": []})
        self.widgets = {axis.name: _widget(axis) for axis in shown.axes}
        self.network = _networks(shown.networks)
        self.pairs = self._pairs()
        self.parallel = self._parallel()
        self._connect()

    @property
    def _told(self) -> list[str]:
        """Columns that are told of a point."""
        return ["number", *(axis.name for axis in self.shown.axes)]

    def _pairs(self) -> Any:
        """A figure for every two objectives; of one objective, over the fields."""
        objectives = self.shown.objectives
        pairs = list(combinations(objectives, 2))[:PAIRS]
        if not pairs:
            pairs = [(field, objectives[0]) for field in self.shown.fields if not field.categorical]
            pairs = pairs[:PAIRS] or [(objectives[0], objectives[0])]
        panels = [TabPanel(child=self._pair(x, y), title=f"{x.name} · {y.name}") for x, y in pairs]
        return Tabs(tabs=panels, sizing_mode="stretch_width", stylesheets=[STYLE])

    def _pair(self, x: Axis, y: Axis) -> Any:
        drawn = _figure(x, y)
        points = drawn.scatter(
            x.name,
            y.name,
            source=self.source,
            view=self.view,
            size=5,
            fill_color=palette.SKY,
            line_color=None,
            fill_alpha=0.5,
            selection_fill_alpha=0.9,
            selection_fill_color=palette.ORANGE,
            nonselection_fill_alpha=0.12,
            name="points",
        )
        if x.objective and x is not y:
            front = ColumnDataSource({name: [] for name in self._told})
            self.fronts.append({"x": x.name, "y": y.name, "source": front})
            drawn.step(
                x.name, y.name, source=front, mode="after", color=palette.VERMILION, line_width=1.5
            )
            drawn.scatter(x.name, y.name, source=front, size=8, color=palette.VERMILION)
        tips = [(name.replace("_", " "), _tip(name, self.columns)) for name in self._told]
        drawn.add_tools(HoverTool(renderers=[points], tooltips=tips, point_policy="snap_to_data"))
        return drawn

    def _parallel(self) -> Any:
        axes = self.shown.axes
        drawn = figure(
            height=HEIGHT,
            sizing_mode="stretch_width",
            tools="save",
            toolbar_location="right",
            x_range=Range1d(start=-0.5, end=len(axes) - 0.5),
            y_range=Range1d(start=-0.16, end=1.12),
        )
        drawn.multi_line(
            "xs", "ys", source=self.background, color=palette.GREY, line_alpha=0.25, line_width=1
        )
        drawn.multi_line(
            "xs", "ys", source=self.chosen, color=palette.ORANGE, line_alpha=0.8, line_width=1.5
        )
        places = list(range(len(axes)))
        drawn.segment(places, 0, places, 1, color=palette.BLACK, line_width=1, name="axes")
        tops = [_short(axis.values[-1:], axis.high) for axis in axes]
        drawn.text(places, 1.03, tops, **_END)
        drawn.text(places, -0.08, [_short(axis.values[:1], axis.low) for axis in axes], **_END)
        drawn.toolbar.logo = None
        drawn.yaxis.visible = False
        drawn.xgrid.visible = drawn.ygrid.visible = False
        drawn.xaxis.ticker = FixedTicker(ticks=list(range(len(axes))))
        drawn.xaxis.major_label_overrides = {at: axis.name for at, axis in enumerate(axes)}
        drawn.xaxis.major_label_orientation = 0.35 if len(axes) > 5 else "horizontal"
        return drawn

    def _connect(self) -> None:
        """Hand the models to the page's script, and let the widgets and the brush call it."""
        page = {
            "source": self.source,
            "truths": self.truths,
            "axes": [axis.record() for axis in self.shown.axes],
            "widgets": self.widgets,
            "network": self.network,
            "fronts": self.fronts,
            "background": self.background,
            "chosen": self.chosen,
        }
        again = CustomJS(
            name="filter", args={"page": page}, code="window.archsimStudy.filter(page)"
        )
        brushed = CustomJS(args={"page": page}, code="window.archsimStudy.choose(page)")
        for widget in [*self.widgets.values(), *([self.network] if self.network else [])]:
            name = "value_throttled" if isinstance(widget, RangeSlider) else "value"
            widget.js_on_change(name, again)
        self.source.selected.js_on_change("indices", brushed)

    @property
    def filters(self) -> list[Any]:
        """The widgets, that of the network first."""
        return [*([self.network] if self.network else []), *self.widgets.values()]


_BOX: dict[str, Any] = {"width": 200, "stylesheets": [STYLE]}

_END: dict[str, Any] = {"text_align": "center", "text_font_size": "11px", "text_baseline": "middle"}


def _figure(x: Axis, y: Axis) -> Any:
    drawn = figure(
        height=HEIGHT,
        sizing_mode="stretch_width",
        tools=TOOLS,
        active_drag="box_select",
        x_axis_type="log" if x.logarithmic else "linear",
        y_axis_type="log" if y.logarithmic else "linear",
        x_axis_label=x.title,
        y_axis_label=y.title,
    )
    drawn.toolbar.logo = None
    return drawn


def _widget(axis: Axis) -> Any:
    """What filters by a field or an objective."""
    if axis.objective:
        return NumericInput(title=f"{axis.title}, at most", mode="float", **_BOX)
    if axis.values and len(axis.values) <= FEW * 4:
        options: list[Any] = [_option(one) for one in axis.values]
        return MultiSelect(title=axis.title, options=options, size=min(len(options), 5), **_BOX)
    return RangeSlider(
        title=axis.title,
        start=axis.low,
        end=axis.high,
        value=(axis.low, axis.high),
        step=(axis.high - axis.low) / 500,
        **_BOX,
    )


def _option(value: Any) -> str:
    """A value as JavaScript writes it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _networks(names: Sequence[str]) -> Any:
    if len(names) < 2:
        return None
    return Select(title="network", options=list(names), value=names[0], **_BOX)


def _tip(name: str, columns: dict[str, Any]) -> str:
    """How a value is written beside a point."""
    if isinstance(columns[name], list):
        return f"@{{{name}}}"
    return f"@{{{name}}}{{0,0.[000]}}"


def _short(values: Sequence[Any], number: float) -> str:
    return str(values[0]) if values and isinstance(values[0], str) else written(number)


__all__ = ["PAIRS", "StudyFigures"]
