#!/usr/bin/env python3
"""Gate schedules of `onbeat import` and `onbeat plan` beside the list scheduling of tsnkit, on the same CSV files.

Makes instances in the style of the published benchmark (Xue et al., RTAS 2024), prints a line for each, and
writes target/schedules/result.json. tsnkit (GPL) is installed from the Python package index into target/schedules.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import TARGET, Missing, command, machine, run, say, table

TSNKIT = "tsnkit==0.3.0"
# The method of tsnkit that needs no licence and solves most: list scheduling.
METHOD = "tsnkit.algorithms.ls"
PLACE = TARGET / "schedules"
PERIODS_US = {"sparse": [500, 1_000, 2_000, 4_000], "dense": [100, 200, 400, 800]}


@dataclass(frozen=True)
class Instance:
    topology: str
    bridges: int
    streams: int
    periods: str
    seed: int

    def write(self, place: Path) -> tuple[Path, Path]:
        """A bridge for each end station, at 1 Gb/s; deadlines as long as periods, 2 µs at the end of each link."""
        dice = random.Random(self.seed)
        pairs = [(at, at + 1) for at in range(self.bridges - 1)]
        pairs += [(0, self.bridges - 1)] if self.topology == "ring" else []
        pairs += [(at, at + self.bridges) for at in range(self.bridges)]
        links = sorted(pairs + [(b, a) for a, b in pairs])
        lines = ["link,q_num,rate,t_proc,t_prop"] + [f'"{link}",8,1,2000,0' for link in links]
        topology, streams = place / "topology.csv", place / "streams.csv"
        topology.write_text("\n".join(lines) + "\n")
        lines = ["stream,src,dst,size,period,deadline,jitter"]
        for number in range(self.streams):
            source, destination = dice.sample(range(self.bridges, 2 * self.bridges), 2)
            period = 1_000 * dice.choice(PERIODS_US[self.periods])
            # Whole hundreds: tsnkit rounds up to them.
            size = dice.choice([100, 200, 300, 400, 500])
            lines.append(f"{number},{source},[{destination}],{size},{period},{period},{period}")
        streams.write_text("\n".join(lines) + "\n")
        return topology, streams


@dataclass(frozen=True)
class Outcome:
    """What a program answered, and CPU seconds of the whole process."""

    answer: str
    cpu_s: float
    said: str = ""
    errors: str = ""


def taken(words: list[str | Path], place: Path, limit_s: float) -> Outcome:
    """Runs a command; one that takes more CPU time than the limit is killed."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen([str(w) for w in words], cwd=place, stdout=out, stderr=errors)
        done = threading.Event()

        def watch() -> None:
            ticks = os.sysconf("SC_CLK_TCK")
            while not done.wait(0.5):
                try:
                    fields = Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()
                except OSError:
                    return
                if (int(fields[11]) + int(fields[12])) / ticks > limit_s:
                    child.kill()
                    return

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        done.set()
        watcher.join()
        out.seek(0)
        errors.seek(0)
        answer = "limit" if child.returncode < 0 else str(child.returncode)
        return Outcome(answer, usage.ru_utime + usage.ru_stime, out.read(), errors.read())


def tsnkit(python: Path, files: tuple[Path, Path], place: Path, limit_s: float) -> tuple[Outcome, float]:
    """Its answer, and the CPU seconds that it says the method itself took."""
    streams, topology = files[1], files[0]
    outcome = taken([python, "-m", METHOD, streams, topology, f"{place}/"], place, limit_s)
    if outcome.answer == "limit":
        return outcome, outcome.cpu_s
    rows = [line.split("|") for line in outcome.said.splitlines() if line.startswith("| ")]
    if len(rows) < 2:
        raise Missing(f"tsnkit: {(outcome.said + outcome.errors).strip().splitlines()[-1:]}")
    flag, solve_s = rows[-1][3].strip(), float(rows[-1][4])
    answers = {"succ": "solved", "fail": "refused"}
    return Outcome(answers.get(flag, flag), outcome.cpu_s), solve_s


def onbeat(binary: str, files: tuple[Path, Path], place: Path, limit_s: float) -> Outcome:
    """Import and plan; `proven` if the plan says that there is no schedule at all."""
    system = place / "system.toml"
    imported = taken([binary, "import", files[0], "--streams", files[1], "-o", system], place, limit_s)
    if imported.answer != "0":
        raise Missing(f"onbeat import: {imported.errors}")
    planned = taken([binary, "plan", system, "--json"], place, limit_s)
    cpu_s = imported.cpu_s + planned.cpu_s
    if planned.answer == "0":
        channels = json.loads(planned.said)["channels"]
        if any(channel["launch"] is None for channel in channels):
            raise Missing("onbeat plan: a channel has no windows")
        return Outcome("solved", cpu_s)
    if planned.answer == "1" and "OB2002" in planned.errors:
        return Outcome("proven" if "has no place" in planned.errors else "refused", cpu_s)
    if planned.answer == "limit":
        return Outcome("limit", cpu_s)
    raise Missing(f"onbeat plan: {planned.errors}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--onbeat", default=str(TARGET / "dist" / "onbeat"), help="the command")
    parser.add_argument("--streams", default="10,40,70,100", help="numbers of streams")
    parser.add_argument("--bridges", default="8", help="numbers of bridges")
    parser.add_argument("--limit", type=float, default=120, help="CPU seconds of one run")
    arguments = parser.parse_args()
    numbers = [[int(n) for n in words.split(",")] for words in (arguments.streams, arguments.bridges)]
    python = PLACE / "venv" / "bin" / "python"
    PLACE.mkdir(parents=True, exist_ok=True)
    if not python.exists():
        say("installing tsnkit")
        command([sys.executable, "-m", "venv", PLACE / "venv"])
    command([python, "-m", "pip", "install", "--quiet", TSNKIT])
    kinds = itertools.product(*numbers, ("line", "ring"), PERIODS_US)
    rows, results = [], []
    for seed, (streams, bridges, topology, periods) in enumerate(kinds):
        instance = Instance(topology, bridges, streams, periods, seed)
        with tempfile.TemporaryDirectory(dir=PLACE) as name:
            place = Path(name)
            files = instance.write(place)
            ours = onbeat(arguments.onbeat, files, place, arguments.limit)
            theirs, method_s = tsnkit(python, files, place, arguments.limit)
        result = instance.__dict__ | {
            "tsnkit": theirs.answer,
            "tsnkit_cpu_s": theirs.cpu_s,
            "tsnkit_method_s": method_s,
            "onbeat": ours.answer,
            "onbeat_cpu_s": ours.cpu_s,
        }
        results.append(result)
        rows.append([
            f"{streams} streams, {bridges} bridges, {topology}, {periods}",
            theirs.answer, f"{theirs.cpu_s:.2f}", f"{method_s:.2f}",
            ours.answer, f"{ours.cpu_s:.3f}", f"{theirs.cpu_s / ours.cpu_s:.0f}",
        ])
        say(" ".join(rows[-1]))
    head = ["instance", "tsnkit", "CPU s", "method, s", "Onbeat", "CPU s", "ratio"]
    print(table(head, rows))
    solved = {who: sum(r[who] == "solved" for r in results) for who in ("tsnkit", "onbeat")}
    proven = sum(r["onbeat"] == "proven" for r in results)
    both = [r for r in results if r["tsnkit"] == r["onbeat"] == "solved"]
    print(f"of {len(results)}: tsnkit solves {solved['tsnkit']}, Onbeat {solved['onbeat']} and proves {proven} infeasible")
    for name, key in (("whole process", "tsnkit_cpu_s"), ("method alone", "tsnkit_method_s")):
        if both:
            total = sum(r[key] for r in both) / sum(r["onbeat_cpu_s"] for r in both)
            middle = statistics.median(r[key] / r["onbeat_cpu_s"] for r in both)
            print(f"CPU time of tsnkit, {name}, to Onbeat's where both solve: {total:.0f} in total, median {middle:.0f}")
    document = {"machine": machine() | {"time": time.strftime("%H:%M:%SZ", time.gmtime())}, "instances": results}
    (PLACE / "result.json").write_text(json.dumps(document, indent=2) + "\n")
    return 0


run("schedules", main)
