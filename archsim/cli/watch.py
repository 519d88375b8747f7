"""A study that is watched: how far it is and what is best in it, while somebody writes it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from archsim.cli.output import output_console, shown
from archsim.cli.scatter import scatter
from archsim.study_report.tables import told, written
from archsim.sweeps.live import is_running, kept_by, news_of
from archsim.sweeps.objectives import titled
from archsim.sweeps.study import Study

POLL_SECONDS = 0.5

NARROWEST, WIDEST, PLOT_ROWS = 40, 110, 14
"""Characters of a line; lines of a picture."""

News = Mapping[str, Any]


def watch_study(folder: Path, *, as_json: bool) -> None:
    """Show a study until its run ends; one that nobody writes, or what is no terminal, once."""
    console = output_console()
    if as_json:
        print(json.dumps(next(_told(folder)), indent=2))
        return
    if not console.is_terminal:
        console.print(view(next(_told(folder)), WIDEST))
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for news in _told(folder):
            width = max(min(console.width, WIDEST), NARROWEST)
            live.update(view(news, width), refresh=True)


def _told(folder: Path) -> Iterator[News]:
    """What is told of a study, while it changes; last, what it keeps.

    Raises `InputError` where there is no study, or it is held by a process that tells nothing.
    """
    while (news := news_of(folder)) is not None and is_running(news):
        yield news
        time.sleep(POLL_SECONDS)
    with Study.open(folder, read_only=True) as study:
        found = kept_by(study)
    killed = news is not None and news["state"] == "running"
    yield {**found, "state": "killed"} if killed else found


def view(news: News, width: int) -> Group:
    """All of it, to be printed in lines of so many characters."""
    parts: list[Any] = [Text(shown(_headline(news)), style="bold")]
    total = max(int(news.get("total", 0)), 1)
    done = int(news.get("done", news["kept"]))
    bar = round(width * min(done / total, 1))
    parts.append(Text("━" * bar, style="green").append("━" * (width - bar), style="bright_black"))
    parts.append(Text(_progress(news)))
    for one in news["networks"]:
        name = Text(shown(one["network"]), style="bold")
        parts += [Text(""), name, _best(one, width), *_front(one, width)]
    return Group(*parts)


STATES = {
    "running": "runs",
    "kept": "nobody writes it",
    "killed": "its run was killed; the same command continues it",
}


def _headline(news: News) -> str:
    where = f", pid {news['pid']} on {news['host']}" if news["state"] == "running" else ""
    late = time.time() - news["told"] if "told" in news else 0.0
    old = f", last heard of {late:,.0f} s ago" if where and late > 5 else ""
    return f"{news['study']}: {STATES.get(news['state'], news['state'])}{where}{old}"


def _progress(news: News) -> str:
    parts = [f"{int(news['kept']):,} points kept"]
    if news["state"] == "running":
        done, total, seconds = int(news["done"]), int(news["total"]), float(news["seconds"])
        parts.append(f"{done:,} of {total:,} in this run")
        if done and seconds:
            minutes, rest = divmod(round((total - done) * seconds / done), 60)
            parts.append(f"{done / seconds:,.3g}/s, {minutes:,}:{rest:02} left")
    else:
        parts.append(f"{int(news['total']):,} in the space")
    parts += [f"{int(news[what]):,} {what}" for what in ("refused", "failed") if news.get(what)]
    return "; ".join(parts)


def _best(network: Mapping[str, Any], width: int) -> Table:
    """The least of every objective."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, width=width)
    table.add_column("objective", no_wrap=True)
    table.add_column("least", justify="right", no_wrap=True)
    table.add_column("point", justify="right", no_wrap=True)
    table.add_column("settings", overflow="fold", ratio=1)
    for one in network["best"]:
        value, unit = told(float(one["value"]), one["objective"])
        where = ", ".join(f"{name} {written(value)}" for name, value in one["fields"].items())
        table.add_row(one["objective"], f"{value} {unit}", f"{one['point']}", shown(where))
    if not network["best"]:
        table.add_row("", "", "", "no point yet that fulfils the requirements")
    return table


def _front(network: Mapping[str, Any], width: int) -> list[Text]:
    """The front of two objectives as a picture."""
    points = [(float(x), float(y)) for x, *rest in network["front"] for y in rest]
    if len(points) < 2:
        return []
    x, y = (titled(name) for name in network["axes"])
    head = f"front of {x} and {y}: {network['on_front']:,} points"
    return [Text(""), Text(head), Text("\n".join(scatter(points, width, PLOT_ROWS)))]


__all__ = ["view", "watch_study"]
