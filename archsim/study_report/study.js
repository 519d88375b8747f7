"use strict";
// What happens on the page of a study: points are filtered, brushed, and drawn as lines over axes.
// All points lie in one source; every figure shows it through one filter of truths.
window.archsimStudy = (() => {
  const MOST_LINES = 1000, MOST_CHOSEN = 500;

  // [rows] of truths: which points the reader has not filtered away.
  const kept = ({ source, axes, widgets, network }) => {
    const data = source.data, count = data.number.length, truths = new Array(count).fill(true);
    const only = network ? network.options.indexOf(network.value) : 0;
    if (network) for (let at = 0; at < count; at++) truths[at] = data.network[at] === only;
    for (const axis of axes) {
      const widget = widgets[axis.name], column = data[axis.name];
      if (!widget) continue;
      if (axis.objective) {
        const most = widget.value;
        if (most === null || Number.isNaN(most)) continue;
        for (let at = 0; at < count; at++) truths[at] = truths[at] && column[at] <= most;
      } else if (widget.type === "MultiSelect") {
        if (!widget.value.length) continue;
        const chosen = new Set(widget.value);
        for (let at = 0; at < count; at++) truths[at] = truths[at] && chosen.has(String(column[at]));
      } else {
        const [low, high] = widget.value;
        if (low <= axis.low && high >= axis.high) continue;
        for (let at = 0; at < count; at++)
          truths[at] = truths[at] && column[at] >= low && column[at] <= high;
      }
    }
    return truths;
  };

  // Places of the points that no other beats in x and y, by rising x.
  const front = (xs, ys, places) => {
    const known = places.filter((at) => Number.isFinite(xs[at]) && Number.isFinite(ys[at]));
    known.sort((a, b) => xs[a] - xs[b] || ys[a] - ys[b]);
    const found = [];
    let least = Infinity, last = -1;
    for (const at of known) {
      const equal = last >= 0 && xs[at] === xs[last] && ys[at] === ys[last];
      if (ys[at] < least || equal) { found.push(at); least = ys[at]; last = at; }
    }
    return found;
  };

  // Where a value lies on an axis of height 1.
  const height = (axis, data, at) => {
    const value = axis.values.length ? data["#" + axis.name][at] : data[axis.name][at];
    if (!Number.isFinite(value)) return NaN;
    if (axis.logarithmic)
      return Math.log(value / axis.low) / Math.log(axis.high / axis.low);
    return (value - axis.low) / (axis.high - axis.low);
  };

  const lines = (target, axes, data, places) => {
    const xs = axes.map((_, at) => at);
    target.data = {
      xs: places.map(() => xs),
      ys: places.map((at) => axes.map((axis) => height(axis, data, at))),
      number: places.map((at) => data.number[at]),
    };
  };

  const written = (value) => typeof value !== "number" ? value
    : !Number.isFinite(value) ? "–"
    : Number.isInteger(value) || Math.abs(value) >= 1e5 ? Math.round(value).toLocaleString("en-GB")
    : value.toPrecision(5);

  // Points as rows of the table of the page.
  const rows = (axes, data, places) => {
    const body = document.getElementById("points").tBodies[0];
    body.replaceChildren(...places.map((at) => {
      const row = document.createElement("tr");
      for (const [name, number] of [["number", true],
        ...axes.map((axis) => [axis.name, !axis.values.length])]) {
        const cell = document.createElement("td");
        cell.textContent = written(data[name][at]);
        if (number) cell.className = "number";
        row.append(cell);
      }
      return row;
    }));
  };

  // So many of them, evenly spread.
  const some = (places, most) => {
    if (places.length <= most) return places;
    return Array.from({ length: most }, (_, at) => places[Math.floor(at * places.length / most)]);
  };

  const say = (id, text) => {
    const found = document.getElementById(id);
    if (found) found.textContent = text;
  };

  // After a filter was moved: fronts, lines and counts follow.
  const filter = (page) => {
    const { source, truths, fronts, background, axes } = page;
    const shown = kept(page), places = [];
    shown.forEach((one, at) => { if (one) places.push(at); });
    truths.booleans = shown;
    for (const one of fronts) {
      const found = front(source.data[one.x], source.data[one.y], places);
      const data = {};
      for (const name of Object.keys(one.source.data))
        data[name] = found.map((at) => source.data[name][at]);
      one.source.data = data;
    }
    lines(background, axes, source.data, some(places, MOST_LINES));
    page.places = places;
    say("shown-points", places.length.toLocaleString("en-GB"));
    choose(page);
  };

  // After a brush: the chosen points, or where there are none the first front, as lines and rows.
  const choose = (page) => {
    const { source, fronts, chosen, axes, truths } = page;
    const brushed = source.selected.indices.filter((at) => !truths.booleans || truths.booleans[at]);
    let places = brushed;
    if (!brushed.length) {
      const numbers = new Set(fronts.length ? fronts[0].source.data.number : []);
      places = (page.places || []).filter((at) => numbers.has(source.data.number[at]));
    }
    lines(chosen, axes, source.data, some(places, MOST_CHOSEN));
    rows(axes, source.data, some(places, MOST_CHOSEN));
    say("chosen-points", brushed.length ? `${brushed.length.toLocaleString("en-GB")} brushed`
      : "the front of the first figure: brush points to see them instead");
  };

  // Figures are drawn on canvas, which does not know the page's colours: they are handed over.
  const colour = (documents) => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue("--" + name).trim();
    for (const each of documents)
      for (const model of each._all_models.values()) {
        if (model.type === "Figure") {
          model.background_fill_color = model.border_fill_color = of("background");
          model.outline_line_color = of("rule");
        } else if (/Axis$/.test(model.type)) {
          model.axis_label_text_color = of("text");
          model.major_label_text_color = of("soft");
          model.axis_line_color = model.major_tick_line_color = of("soft");
          model.minor_tick_line_color = null;
        } else if (model.type === "Grid") model.grid_line_color = of("grid");
        else if (model.type === "Text") model.text_color = { value: of("text") };
        else if (model.type === "Segment") model.line_color = { value: of("soft") };
      }
  };

  return { filter, choose, colour, front, kept, height };
})();
