"""The page as a whole: what is on it, and in which order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archsim.report.templates import template_of
from archsim.study_report import tables
from archsim.study_report.shown import MOST_POINTS, Shown, fronts_of, shown_of

if TYPE_CHECKING:
    from archsim.sweeps.study import Study

_FOLDER = Path(__file__).parent


def write_study_report(study: Study, path: Path, *, most_points: int = MOST_POINTS) -> None:
    """Write `study_report_html` to a file that must not exist yet: whole, or not at all.

    Raises `InputError` if the file exists or cannot be written, and for a study without points.
    """
    from archsim.files import require_new, write_new

    require_new(path)
    write_new({path: study_report_html(study, most_points=most_points)})


def study_report_html(study: Study, *, most_points: int = MOST_POINTS) -> str:
    """A study as one HTML page that needs no other file and no network.

    most_points: of larger studies, the fronts and an even sample of so many are on the page, which
    says so; every front is of all points.  Raises `InputError` for a study without points that were
    computed, and where the package that draws is not installed.
    """
    fronts = fronts_of(study)
    shown = shown_of(study, fronts, most_points)
    return template_of(_FOLDER, "page.html").render(
        study=study,
        shown=shown,
        name=study.space.name or study.path.name,
        counts=study.counts,
        provenance=study.provenance,
        best=tables.best_of(study, {name: fronts[name] for name in shown.networks}),
        matters=tables.matters(shown),
        commons={name: tables.commons(study, fronts, name) for name in shown.networks},
        refused=tables.refusals(study),
        space=json.dumps(study.space.record(), indent=2),
        **_drawn(shown),
    )


def _drawn(shown: Shown) -> dict[str, Any]:
    """The figures as a script, the places where they are put, and Bokeh itself."""
    from bokeh.embed import components
    from bokeh.resources import INLINE

    from archsim.study_report.figures import StudyFigures

    made = StudyFigures(shown)
    filters = {f"filter{at}": one for at, one in enumerate(made.filters)}
    parts = {"pairs": made.pairs, "parallel": made.parallel, **filters}
    script, places = components(parts, wrap_script=False)
    return {
        "script": script,
        "places": places,
        "filters": [places[name] for name in filters],
        "bokeh": INLINE.render_js(),
    }
