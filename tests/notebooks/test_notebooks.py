"""Every notebook runs from top to bottom, and is stored with what it shows, as it lies."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

nbformat: Any = pytest.importorskip("nbformat", reason="pip install 'archsim[notebook]'")
nbclient: Any = pytest.importorskip("nbclient", reason="pip install 'archsim[notebook]'")
pytest.importorskip("ipykernel", reason="pip install 'archsim[notebook]'")

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS_A_CELL = 300

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@every_notebook
def test_notebook_is_stored_with_its_outputs(path: Path) -> None:
    """As `notebooks/execute.py` writes it: every cell run in turn, no leavings of an editor."""
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata["language_info"] == {"name": "python"}
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any("image/png" in one.get("data", {}) for cell in code for one in cell.outputs)
    for cell in notebook.cells:
        assert not cell.metadata, cell.id
    for cell in code:
        for output in cell.outputs:
            assert output.output_type != "error", cell.id
            assert output.get("name") != "stderr", cell.id
            shown = "".join(map(str, (output.get("text", ""), *output.get("data", {}).values())))
            assert not re.search(r"(?<!\w)/(?:home|root|tmp|work)/", shown), cell.id
            drawn = "<Figure" not in shown or "image/png" in output.get("data", {})
            assert drawn, f"{cell.id}: a figure is kept by its name, not as a picture"


@every_notebook
def test_notebook_runs(path: Path, tmp_path: Path) -> None:
    """In the interpreter of these tests, in an empty folder; an error in any cell fails."""
    notebook = read(path)
    manager = _manager()
    client = nbclient.NotebookClient(
        notebook,
        km=manager,
        timeout=SECONDS_A_CELL,
        resources={"metadata": {"path": str(tmp_path)}},
    )
    client.execute(cleanup_kc=True)  # of a manager that is given it would leave the kernel
    assert not manager.has_kernel
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    wrong = [
        (cell.id, output)
        for cell in code
        for output in cell.outputs
        if output.output_type == "error"
    ]
    assert not wrong
    assert list(tmp_path.iterdir()) == [], "a notebook must leave no files behind"


def _manager() -> Any:
    """A kernel of this very interpreter, whatever "python3" is called elsewhere on the machine."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    manager: Any = AsyncKernelManager(kernel_name="python3")
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=command, language="python", display_name="Python 3")
    return manager
