"""The notebooks run from their first to their last cell."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def execute(name: str) -> tuple[nbformat.NotebookNode, list[str]]:
    """Execute a notebook; return it, and of which kinds its outputs are."""
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return notebook, [kind for output in outputs for kind in output.get("data", {})]


def test_the_notebook_runs_and_shows_figures(
    run_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONBEAT_RUN", str(run_directory))
    _, kinds = execute("first-look.ipynb")
    assert kinds.count("image/png") == 3
    assert kinds.count("text/html") >= 2


def test_the_other_notebook_drives_a_system_until_it_has_the_largest_gain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook, kinds = execute("drive.ipynb")
    assert kinds.count("image/png") == 2
    assert kinds.count("text/html") == 2
    # Messages cross in less than a period T, so x' = x + gain T (1 - x): more than 1 above 1 / T.
    found = next(cell for cell in notebook.cells if "bisection" in cell.source)
    steps = notebook.cells[notebook.cells.index(found) + 1].outputs[0]["data"]["text/plain"]
    gains = [float(line.split()[1]) for line in steps.splitlines()[1:]]
    assert 985 < gains[-1] < 1015, steps
