#!/usr/bin/env python3
"""How fast virtual time is: what a call that waits takes beside a round trip of the kernel, and how
much faster than real time a substation executes.

Prints medians over the rounds; writes target/virtual_time/result.json. `--onbeat` and `--library` name
other builds, such as an earlier one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import PROFILE, ROOT, TARGET, Missing, command, compile_c  # noqa: E402

HERE = Path(__file__).resolve().parent
PROGRAMS = (1, 2, 10, 100)
CALLS = 200_000  # of all programs together
SUBSTATION_S = 5


def description(programs: int, calls: int) -> str:
    """Programs that sleep, two on a host."""
    lines = ["format = 1", 'name = "sleepers"', "[run]", "duration_s = 10", "seed = 1"]
    hosts = (programs + 1) // 2
    for host in range(hosts):
        lines += ["[[host]]", f'name = "h{host}"']
    lines += ["[[bridge]]", 'name = "b"']
    for host in range(hosts):
        lines += ["[[link]]", f'ends = ["h{host}", "b"]', "rate_mbps = 100"]
    for number in range(programs):
        command_line = f'["./sleeper", "{calls}", "{number}"]'
        lines += ["[[program]]", f'name = "p{number}"', f'host = "h{number // 2}"']
        lines += [f"command = {command_line}"]
    return "\n".join(lines) + "\n"


def calls(onbeat: Path, sleeper: Path, programs: int) -> float:
    """Nanoseconds that a call takes in a run of so many programs."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(sleeper, directory)
        each = CALLS // programs
        Path(directory, "system.toml").write_text(description(programs, each), encoding="utf-8")
        words = [onbeat, "run", ".", "--out", "out"]
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
        said = [line for line in done.stderr.splitlines() if "sleeper: " in line]
        if done.returncode or not said:
            raise Missing(f"onbeat run: {done.stderr.strip().splitlines()[-1:]}")
        return int(said[0].rsplit(" ", 1)[1]) / programs


def substation(onbeat: Path, programs: Path) -> float:
    """By how much the substation executes faster than real time, with all output."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(HERE / "substation" / "system.toml", directory)
        shutil.copytree(programs, Path(directory, "build"))
        began = time.monotonic()
        command([onbeat, "run", ".", "--out", "out"], cwd=directory)
        return SUBSTATION_S / (time.monotonic() - began)


def build(library: Path, into: Path) -> None:
    """Compiles what is run."""
    flags = [f"-I{ROOT / 'crates' / 'capi' / 'include'}", library]
    compile_c(into / "peer", [HERE / "peer.c"])
    compile_c(into / "sleeper", [HERE / "sleeper.c"], *flags)
    for name in ("unit", "relay"):
        compile_c(into / "substation" / name, [HERE / "substation" / f"{name}.c"], *flags)


def measure(onbeat: Path, programs: Path) -> dict[str, float]:
    """One round of everything."""
    found = {}
    for number in PROGRAMS:
        for kind in ("futex", "socket"):
            peer = command([programs / "peer", kind, str(CALLS), str(number)])
            found[f"{kind}, {number}"] = float(peer)
        found[f"call, {number}"] = calls(onbeat, programs / "sleeper", number)
        found[f"ratio, {number}"] = found[f"call, {number}"] / found[f"futex, {number}"]
    found["substation"] = substation(onbeat, programs / "substation")
    return found


def show(medians: dict[str, float]) -> None:
    """The table."""
    print("programs  futex µs  sockets µs  call µs  call / futex")
    for number in PROGRAMS:
        futex, sockets, call = (medians[f"{k}, {number}"] / 1000 for k in ("futex", "socket", "call"))
        ratio = medians[f"ratio, {number}"]
        print(f"{number:8}  {futex:8.2f}  {sockets:10.2f}  {call:7.2f}  {ratio:12.2f}")
    print(f"\nThe substation: {medians['substation']:.2f} times as fast as real time.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--onbeat", type=Path, help="the command; is built if not given")
    parser.add_argument("--library", type=Path, help="libonbeat.a of the same build")
    chosen = parser.parse_args()
    try:
        if not chosen.onbeat:
            cargo = ["cargo", "build", "--profile", PROFILE, "--locked"]
            command([*cargo, "-p", "onbeat-cli", "-p", "onbeat-capi"], cwd=ROOT)
        onbeat = (chosen.onbeat or TARGET / PROFILE / "onbeat").resolve()
        library = (chosen.library or onbeat.with_name("libonbeat.a")).resolve()
        programs = TARGET / "virtual_time" / "build"
        build(library, programs)
        rounds = [measure(onbeat, programs) for _ in range(1 if chosen.quick else chosen.rounds)]
    except Missing as why:
        print(f"virtual_time: {why}", file=sys.stderr)
        return os.EX_UNAVAILABLE
    medians = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
    show(medians)
    result = TARGET / "virtual_time" / "result.json"
    result.write_text(json.dumps({"rounds": rounds, "medians": medians}, indent=1), encoding="utf-8")
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main())
