"""What the documentation site shows beside `docs/`: benchmarks, notebooks, decisions, figures.

`mkdocs build` calls these.  The gallery's figures are drawn anew for every build, from simulations
of the shipped designs, so that they never show what archsim no longer does.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]

BESIDE = {"benchmarks": "*.md", "notebooks": "*.ipynb"}
"""Folders beside `docs/`, and which of their files are pages."""

_LINK = re.compile(r"\]\((?P<up>(?:\.\./)+)(?P<rest>(?:benchmarks|notebooks)/[^)]*)\)")


def on_config(config: Any, **_: Any) -> Any:
    """Decisions and benchmarks stand last in the navigation, all that there are."""
    for title, folder, place in (
        ("Measured", "benchmarks", ROOT / "benchmarks"),
        ("Decisions", "adr", ROOT / "docs" / "adr"),
    ):
        pages = sorted(f"{folder}/{path.name}" for path in place.glob("*.md"))
        config.nav.append({title: pages})
    return config


@event_priority(100)
def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the pages beside `docs/`, and the figures."""
    for folder, pattern in BESIDE.items():
        for path in sorted((ROOT / folder).glob(pattern)):
            name = f"{folder}/{path.name}"
            files.append(File(name, str(ROOT), config.site_dir, use_directory_urls=False))
    for name, svg in figures():
        files.append(File.generated(config, f"gallery/{name}.svg", content=svg))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to a folder beside `docs/`, and from there back: on the site it lies inside."""
    markdown = markdown.replace("](../docs/", "](../")
    return _LINK.sub(lambda found: f"]({found['up'][3:]}{found['rest']})", markdown)


def figures() -> Iterator[tuple[str, str]]:
    """Every figure of the gallery as (name, SVG)."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    from archsim import simulate
    from archsim.energy import account

    result = simulate("edge-16", "resnet50")
    costs = account(result, "45nm")
    plots, uneven = result.plot, simulate("edge-16", "mobilenetv2").plot
    compared = compared_designs("mobilenetv2", ("edge-16", "volta", "vsq-16"))
    drawn = {
        "cycles": plots.cycles,
        "utilization": plots.utilization,
        "traffic": plots.traffic,
        "roofline": plots.roofline,
        "activity": plots.activity,
        "memory_bytes": plots.memory_bytes,
        "energy": lambda: plots.energy(costs),
        "energy_by_component": lambda: plots.energy_by_component(costs),
        "area": lambda: plots.area(costs),
        "energy_map": lambda: plots.energy_map(costs),
        "area_map": lambda: plots.area_map(costs),
        "pes": uneven.pes,
        "pes_over_time": uneven.pes_over_time,
        "gantt": lambda: plots.gantt("res2.1/conv2", tiles=slice(0, 12)),
        "compared": lambda: compared.plot.overview().axes[0],
    }
    for name, draw in drawn.items():
        figure = draw().figure
        text = io.StringIO()
        figure.savefig(text, format="svg")
        plt.close(figure)
        yield name, text.getvalue()


def compared_designs(network: str, designs: tuple[str, ...]) -> Any:
    """A network on several designs, with energy and area, side by side."""
    import json

    from archsim import simulate
    from archsim.comparison import compare_results
    from archsim.energy import account
    from archsim.saved import parse_result

    saved: list[Any] = []
    for name in designs:
        result = simulate(name, network)
        record = {**json.loads(result.to_json()), **account(result, "45nm").record()}
        saved.append(parse_result(record, name))
    return compare_results(saved)
