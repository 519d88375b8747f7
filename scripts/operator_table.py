"""Writes the table of ONNX operators in docs/how-to/onnx-operators.md from the code.

python scripts/operator_table.py          writes it
python scripts/operator_table.py --check  exits with 1 if it is not what the code says
"""

from __future__ import annotations

import sys
from pathlib import Path

from workloads.onnx_contrib import DOMAIN
from workloads.onnx_import import supported_operators
from workloads.onnx_language_rules import RULES
from workloads.onnx_matrix import FORMS
from workloads.onnx_operators import CONSTANTS, VIEWS
from workloads.recurrent import GATES
from workloads.vector_work import MOVES, PER_INPUT, PER_OUTPUT

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "onnx-operators.md"
BEGIN, END = "<!-- table: scripts/operator_table.py -->", "<!-- end of table -->"

OTHER = {
    "MaxPool",
    "AveragePool",
    "LRN",
    "Resize",
    "Sum",
    "Mean",
    "Max",
    "Min",
    "QLinearAveragePool",
}
KINDS: tuple[tuple[str, set[str]], ...] = (
    ("matrix layers", set(FORMS)),
    ("matrix layers with cell work, of any number of steps", set(GATES)),
    ("no layer: they rename elements", set(VIEWS)),
    ("no layer: known before the network runs", set(CONSTANTS)),
    ("vector work a window, a channel or an operand", OTHER),
    ("vector work an output element", set(PER_OUTPUT)),
    ("vector work an input element", set(PER_INPUT)),
    ("movement of elements, of 0 operations", set(MOVES)),
)
"""What they become, and which they are; of those in several rows the first counts."""


def table() -> str:
    """The table, every supported operator once; `If` is put in its place before."""
    left = {name: name.removeprefix(f"{DOMAIN}.") for name in supported_operators()}
    rows = ["| they become | operators |", "|---|---|"]
    written_out = [".".join(filter(None, one)) for one in sorted(RULES)]
    names = ", ".join(f"`{name}`" for name in written_out)
    rows.append(f"| products and vector work, written out as other operators | {names} |")
    left = {name: short for name, short in left.items() if name not in written_out}
    for become, which in KINDS:
        found = [name for name, short in left.items() if short in which]
        rows.append(f"| {become} | {', '.join(f'`{name}`' for name in found)} |")
        left = {name: short for name, short in left.items() if name not in found}
    if left:
        raise SystemExit(f"say in KINDS what these become: {', '.join(left)}")
    rows.append("| the arm that they take, where their condition is constant | `If` |")
    return "\n".join(rows)


def page() -> str:
    """The page with the table as it should be."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    wanted = page()
    if "--check" in sys.argv and wanted != PAGE.read_text():
        raise SystemExit(f"{PAGE} is not what the code says; run {sys.argv[0]}")
    PAGE.write_text(wanted)
