"""What the tests share: the real command, and what it leaves."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def onbeat(*arguments: str | Path) -> None:
    """Run the command; `scripts/python-tests` says which one it is."""
    command = [os.environ["ONBEAT"], *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def run_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All scenarios of the first example, the first 11 s of each: the last of them has noise."""
    out = tmp_path_factory.mktemp("outputs") / "run"
    example = ROOT / "examples/01-two-hosts"
    onbeat(
        "run", example, "--all-scenarios", "--time", "virtual", "--duration", "11s", "--out", out
    )
    return out


@pytest.fixture(scope="session")
def simulation_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five simulations of the first example."""
    out = tmp_path_factory.mktemp("outputs") / "simulation"
    example = ROOT / "examples/01-two-hosts"
    onbeat("simulate", example, "--repetitions", "5", "--duration", "1s", "--out", out)
    return out
