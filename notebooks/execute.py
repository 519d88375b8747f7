"""Run the notebooks from top to bottom and keep what they show, to be read where they lie.

    python notebooks/execute.py              all of them, a few minutes
    python notebooks/execute.py 01 03        some, by how their names begin

Of a cell's outputs only texts, tables and pictures are kept: no times, no paths, no leavings of an
editor (`tests/notebooks/test_notebooks.py` says what is stored).
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

FOLDER = Path(__file__).parent
SECONDS_A_CELL = 600
KEPT = ("text/plain", "text/html", "image/png", "text/markdown")


def execute(path: Path) -> None:
    """Run one notebook in an empty folder, and write it back with its outputs."""
    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=SECONDS_A_CELL, resources=resources).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data = {kind: output.data[kind] for kind in KEPT if kind in output.data}
                output.metadata = {}
    nbformat.write(notebook, path)


def main() -> None:
    wanted = tuple(sys.argv[1:]) or ("",)
    for path in sorted(FOLDER.glob("*.ipynb")):
        if path.name.startswith(wanted):
            print(path.name, flush=True)
            execute(path)


if __name__ == "__main__":
    main()
