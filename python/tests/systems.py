"""Systems of two hosts on a bridge, whose programs are in Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HOSTS = """
format = 1
name = "test"
[run]
duration_ms = {duration_ms}
hang_timeout_s = 60
[[host]]
name = "a"
[[host]]
name = "b"
[[bridge]]
name = "s"
forwarding_ns = 1000
[[link]]
ends = ["a", "s"]
rate_mbps = 100
propagation_ns = 100
[[link]]
ends = ["s", "b"]
rate_mbps = 100
propagation_ns = 100
"""

CHANNEL = """
[[channel]]
name = "{name}"
destination = "01:00:5e:00:00:0{number}"
stream_id = {number}
class = "A"
size_octets = {size}
rate_hz = {rate_hz}
talker = "{talker}"
listeners = ["{listener}"]
"""

PROGRAM = """
[[program]]
name = "{name}"
host = "{host}"
command = ["{python}", "{name}.py"]
"""


def run(directory: Path, time: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """Run a system in virtual or real time or in namespaces; return what its programs printed."""
    how = ["--network", "netns"] if time == "netns" else ["--time", time]
    command = [os.environ["ONBEAT"], "run", str(directory), *how]
    # Without buffers a line is written in two parts, and another program's may come between.
    given = {**(os.environ if environment is None else environment), "PYTHONUNBUFFERED": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=given)
    assert done.returncode == 0, done.stdout + done.stderr
    return (done.stdout + done.stderr).splitlines()


def programs(names: tuple[str, str], python: str | Path = sys.executable) -> str:
    """Describe a program of each host."""
    hosts = zip(names, "ab", strict=True)
    return "".join(PROGRAM.format(name=n, host=h, python=python) for n, h in hosts)


def describe(
    directory: Path,
    duration_ms: int,
    channels: str,
    sources: dict[str, str],
    python: str | Path = sys.executable,
) -> None:
    """Write a system of these channels and two programs."""
    first, second = sources
    text = HOSTS.format(duration_ms=duration_ms) + channels + programs((first, second), python)
    (directory / "system.toml").write_text(text)
    for name, source in sources.items():
        (directory / f"{name}.py").write_text(source)


def system(
    directory: Path, duration_ms: int, channels: str, sources: dict[str, str], time: str = "virtual"
) -> list[str]:
    """Run such a system; return what its programs printed."""
    describe(directory, duration_ms, channels, sources)
    return run(directory, time)


def said(lines: list[str], word: str) -> list[list[int]]:
    """Give the numbers of the lines that begin with a word."""
    words = [line.split() for line in lines]
    return [[int(number) for number in line[1:]] for line in words if line[:1] == [word]]


def channel(name: str, number: int, ends: str, size: int = 16, rate_hz: int = 100) -> str:
    """Describe a channel from the first host of ``ends`` to the second."""
    talker, listener = ends
    return CHANNEL.format(
        name=name, number=number, talker=talker, listener=listener, size=size, rate_hz=rate_hz
    )
