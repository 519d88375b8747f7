"""Write `docs/schema/*.json` and the tables of `docs/result-json.md` from the schemas in the code.

python scripts/schemas.py          # write what has changed
"""

from __future__ import annotations

import json
from pathlib import Path

from archsim.schema.outputs import COMPARISON, PAPER
from archsim.schema.page import tables
from archsim.schema.result import RESULT
from rtl.cli.verdict_schema import VERDICT

DOCS = Path(__file__).parents[1] / "docs"

SCHEMAS = {"result": RESULT, "comparison": COMPARISON, "paper": PAPER, "verdict": VERDICT}

MARK = "<!-- The tables below are made by scripts/schemas.py from archsim/schema/result.py. -->"


def made() -> dict[Path, str]:
    """Every file that is made, with its text."""
    files = {
        DOCS / "schema" / f"{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in SCHEMAS.items()
    }
    page = DOCS / "result-json.md"
    above, mark, _ = page.read_text(encoding="utf-8").partition(MARK)
    assert mark, f"{page} has lost its mark"
    return {**files, page: "\n".join([above + mark, "", *tables(RESULT)])}


if __name__ == "__main__":
    for path, text in made().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
