"""What the tests share: the real command, and what it leaves."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NoReturn

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


def not_run(need: str, why: str) -> NoReturn:
    """Skip a test as tests in Rust do: told at the end of `make test`, a failure where required.

    What only another machine could have (`machine`) is never required.
    """
    test = os.environ.get("PYTEST_CURRENT_TEST", "a test").split(" ")[0]
    line = f"not run: {test} ({need}): {why}\n"
    if path := os.environ.get("ONBEAT_NOT_RUN"):
        with Path(path).open("a", encoding="utf-8") as told:
            told.write(line)
    if need != "machine" and need in os.environ.get("ONBEAT_REQUIRE", "").split():
        pytest.fail(f"ONBEAT_REQUIRE wants `{need}`: {line}")
    pytest.skip(line)
