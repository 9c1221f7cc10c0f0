#!/usr/bin/env python3
"""Slot errors of four stations of Network Code on a Linux bridge, beside the wake-up errors of cyclictest.

In each round the stations run, then cyclictest, at the same priority, interval and core as the master. Every second
round has the reverse order. `../README.md` says how to read it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import (  # noqa: E402
    PROFILE,
    ROOT,
    TARGET,
    Missing,
    command,
    cyclictest,
    machine,
    percentile,
    run,
    say,
    table,
    wait_for_namespace,
)

OUT = TARGET / "network_code"

MASTER = """
station master
output turn[1]
input first[8]
input shared[8]
message even = 1[1]
message odd = 2[1]
message first = 3[8]
message shared = 4[8]
begin:
    future slots, 800 us
    sync master
    create turn
    branch count(0, 2), second_turn
    send even
    halt
second_turn:
    send odd
    halt
slots:
    future begin, 200 us
    receive first, first
    receive shared, shared
    halt
"""

SLAVE = """
station {name}
output value[8]
input turn[1]
message turn = {turn}[1]
message value = {message}[8]
begin:
    sync slave, 5 ms
    branch sync_timeout, begin
    future slot, {slot}
    halt
slot:
    {decision}
    create value
    send value
    goto begin
"""

# A station of the shared slot sends only in a round in which it has heard that it is its turn.
TURN = "receive turn, turn\n    branch not received, begin"


def slave(name: str, turn: int, message: int, slot: str, decision: str) -> str:
    return SLAVE.format(name=name, turn=turn, message=message, slot=slot, decision=decision)


PROGRAMS = {
    "master": MASTER,
    "first": slave("first", 1, 3, "300 us", "receive turn, turn"),
    "second": slave("second", 1, 4, "550 us", TURN),
    "third": slave("third", 2, 4, "550 us", TURN),
}


@contextmanager
def bridged(hosts: int) -> Iterator[list[list[str]]]:
    """The words that run a command in the namespace of each host; all are on one Linux bridge."""
    holders = [subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE) for _ in range(hosts + 1)]
    try:
        enter = [["nsenter", "--net", "--target", str(holder.pid)] for holder in holders]
        for holder in holders:
            wait_for_namespace(holder.pid)
        bridge = [*enter[0], "ip", "link"]
        command([*bridge, "add", "br0", "type", "bridge"])
        command([*bridge, "set", "br0", "up"])
        for port, words in enumerate(enter[1:]):
            far = ["peer", "name", f"p{port}", "netns", str(holders[0].pid)]
            command([*words, "ip", "link", "add", "eth0", "type", "veth", *far])
            command([*words, "ip", "link", "set", "eth0", "up"])
            command([*bridge, "set", f"p{port}", "master", "br0", "up"])
        for _ in range(100):
            if command([*enter[0], "bridge", "link"]).count("state forwarding") == hosts:
                break
            command(["sleep", "0.1"])
        yield enter[1:]
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


def stations(onbeat: Path, hosts: list[list[str]], rounds: int, fifo: int, cores: list[int]) -> dict[str, dict]:
    """The documents of the stations, by name. The master begins last and ends first."""
    names = list(PROGRAMS)
    running: dict[str, subprocess.Popen[str]] = {}
    for at in (1, 2, 3, 0):
        words = [*hosts[at], str(onbeat), "nc", "run", str(OUT / f"{names[at]}.nc"), "--interface", "eth0", "--json"]
        words += ["--cpu", str(cores[at % len(cores)]), "--late-limit", "200us"]
        words += ["--priority", str(fifo)] if fifo else []
        words += ["--rounds", str(rounds)] if at == 0 else []
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        running[names[at]] = subprocess.Popen(words, **pipes)
        command(["sleep", "0.2"])
    result = {}
    for name in ("master", "first", "second", "third"):
        if name != "master":
            running[name].terminate()
        out, errors = running[name].communicate()
        if not out:
            raise Missing(f"onbeat nc run: {errors.strip()}")
        result[name] = json.loads(out)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--onbeat", help="the command; built if it is not given")
    parser.add_argument("--quick", action="store_true", help="one round of 2,000")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=10_000, help="rounds of 1 ms")
    parser.add_argument("--fifo", type=int, default=0, help="SCHED_FIFO priority")
    parser.add_argument("--cores", default="0,1")
    chosen = parser.parse_args()
    rounds, repeats = (2_000, 1) if chosen.quick else (chosen.rounds, chosen.repeats)
    cores = [int(core) for core in chosen.cores.split(",")]
    onbeat = Path(chosen.onbeat).resolve() if chosen.onbeat else TARGET / PROFILE / "onbeat"
    if not chosen.onbeat:
        command(["cargo", "build", "--profile", PROFILE, "--locked", "--quiet", "-p", "onbeat-cli"], cwd=ROOT)
    OUT.mkdir(parents=True, exist_ok=True)
    for name, text in PROGRAMS.items():
        (OUT / f"{name}.nc").write_text(text)
    results = []
    for at in range(repeats):
        say(f"round {at + 1} of {repeats}")
        order = ["stations", "cyclictest"] if at % 2 == 0 else ["cyclictest", "stations"]
        result: dict[str, object] = {}
        for who in order:
            if who == "stations":
                with bridged(4) as hosts:
                    result[who] = stations(onbeat, hosts, rounds, chosen.fifo, cores)
            else:
                errors = cyclictest(["taskset", "--cpu-list", str(cores[0])], chosen.fifo, rounds)
                result[who] = {part: percentile(errors, value) for part, value in (("p50", 0.5), ("p99", 0.99))}
        results.append(result)
    rows = []
    for name in PROGRAMS:
        for part in ("p50", "p99"):
            of = [r["stations"][name]["slot_error_ns"][part] for r in results]
            beside = [r["cyclictest"][part] for r in results]
            ratios = [a / b for a, b in zip(of, beside, strict=True)]
            rows.append([
                f"{name}, {part}", f"{median(of) / 1e3:.1f}", f"{median(beside) / 1e3:.1f}",
                f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}",
            ])
    print(table(["slot error", "us", "cyclictest, us", "ratio", "over the rounds"], rows))
    for name in PROGRAMS:
        total: dict[str, int] = {}
        for result in results:
            for key, value in result["stations"][name]["counters"].items():
                total[key] = total.get(key, 0) + value
        print(f"{name}: " + ", ".join(f"{value} {key.replace('_', ' ')}" for key, value in total.items() if value))
    (OUT / "result.json").write_text(json.dumps({"machine": machine(), "rounds": results}, indent=2) + "\n")
    return 0


run("network_code", main)
