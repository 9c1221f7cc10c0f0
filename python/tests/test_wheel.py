"""The wheel, installed in an environment of its own, is all that a program needs."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from conftest import ROOT
from systems import channel, describe, run, said

LIBRARY = Path(os.environ["ONBEAT_HOME"], "target/release/libonbeat.so")

TALKER = """
import asyncio
import numpy as np
from onbeat import aio

async def main(run):
    talker = run.talker("reading", 16)
    run.start()
    for count in range(5):
        await talker.write(np.array([count, -count]))
        await asyncio.sleep(0.010)

aio.run(main)
"""

LISTENER = """
import os, sys
import numpy as np
from onbeat import _library
from onbeat.channels import Run, Stopped

assert "ONBEAT_HOME" not in os.environ
assert _library.find(None).startswith(sys.prefix), _library.find(None)
values = np.zeros(2, "<i8")
with Run() as run:
    listener = run.listener("reading", 16)
    run.start()
    for _ in range(5):
        listener.read_into(values)
        print("got", *values)
"""


def done(*command: str | Path, **environment: str) -> str:
    """Execute a command; return what it printed."""
    words = [str(word) for word in command]
    more = {**os.environ, **environment}
    ended = subprocess.run(words, capture_output=True, text=True, check=False, env=more, cwd="/")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def build(into: Path, library: Path) -> subprocess.CompletedProcess[str]:
    """Build the wheel as `make wheel` does."""
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", into]
    environment = {**os.environ, "ONBEAT_WHEEL_LIBRARY": str(library)}
    command = [*map(str, words), str(ROOT / "python")]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, with the library that was built."""
    directory = tmp_path_factory.mktemp("wheels")
    built = build(directory, LIBRARY)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = directory.glob("onbeat-*.whl")
    return wheel


def test_the_wheel_names_the_systems_that_its_library_can_be_loaded_on(wheel: Path) -> None:
    tag = wheel.stem.split("-")[-1]
    assert wheel.name.split("-")[2:4] == ["py3", "none"]
    assert tag.startswith("manylinux_")
    shown = done(sys.executable, "-m", "auditwheel", "show", wheel)
    assert f'following platform tag: "{tag}"' in " ".join(shown.split())


def test_a_wheel_of_a_library_that_there_is_not_is_refused(tmp_path: Path) -> None:
    built = build(tmp_path, tmp_path / "libonbeat.so")
    assert built.returncode != 0
    assert "run make first" in built.stdout + built.stderr


def test_programs_need_nothing_but_the_installed_wheel(tmp_path: Path, wheel: Path) -> None:
    place = tmp_path / "venv"
    venv.create(place, with_pip=True)
    python = place / "bin/python"
    done(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    sources = {"talker": TALKER, "listener": LISTENER}
    system = tmp_path / "system"
    system.mkdir()
    describe(system, 100, channel("reading", 1, "ab"), sources, python)
    unwanted = ("ONBEAT_HOME", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
    clean = {name: value for name, value in os.environ.items() if name not in unwanted}
    lines = run(system, "virtual", clean)
    assert said(lines, "got") == [[count, -count] for count in range(5)]
    loaded = f"import onbeat; print(len(onbeat.load({str(system / 'out')!r}).messages))"
    assert done(python, "-c", loaded) == "5\n"
