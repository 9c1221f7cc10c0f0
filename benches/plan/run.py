#!/usr/bin/env python3
"""How long `onbeat check` takes, with bounds and without; and how long `onbeat plan` takes for scheduled channels:
processor seconds and memory of the whole command.

Makes the systems, and prints one line for each; writes target/plan/result.json and target/plan/growth.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import IO

from chart import chart

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()

HEAD = ["format = 1", 'name = "plan"', "[run]", "duration_ms = 50"]


def link(one: str, other: str, mbps: int) -> list[str]:
    return ["[[link]]", f'ends = ["{one}", "{other}"]', f"rate_mbps = {mbps}"]


def nodes(kind: str, names: list[str]) -> list[str]:
    return [line for name in names for line in (f"[[{kind}]]", f'name = "{name}"')]


def windows(interval_ns: int) -> str:
    """One stream over two ports with windows for one of its frames in each 400 µs."""
    lines = HEAD + nodes("bridge", ["s", "t"]) + nodes("host", ["a", "b"])
    lines += link("a", "s", 100) + link("s.x", "t.x", 100) + link("b", "t.b", 100)
    lines += ["[[stream]]", 'name = "x"', 'talker = "a"', 'listeners = ["b"]', "traffic_class = 5"]
    lines += ["frame_octets = 1522", f"interval_ns = {interval_ns}"]
    lines += ["[[port]]", 'names = ["s.x", "t.b"]', "gates = [{ entries = ["]
    lines += ["{ open = [5], interval_ns = 157_490 }, { open = [7], interval_ns = 242_510 }] }]"]
    return "\n".join(lines) + "\n"


def tree(bridges: int, streams: int, classes: list[int], line: bool = False) -> str:
    """A random tree, or a line, of bridges with two hosts each and streams between any two of them, at a
    load that no link is too slow for."""
    dice = random.Random(1)
    hosts = [f"h{at}" for at in range(2 * bridges)]
    lines = HEAD + nodes("bridge", [f"b{at}" for at in range(bridges)]) + nodes("host", hosts)
    for at in range(1, bridges):
        lines += link(f"b{at - 1 if line else dice.randrange(at)}", f"b{at}", 1000)
    for at, host in enumerate(hosts):
        lines += link(host, f"b{at // 2}", 1000)
    for at in range(streams):
        talker, listener = dice.sample(hosts, 2)
        lines += ["[[stream]]", f'name = "s{at}"', f'talker = "{talker}"', f'listeners = ["{listener}"]']
        lines += [f"traffic_class = {dice.choice(classes)}", f"frame_octets = {dice.choice([68, 100, 200, 400])}"]
        lines += [f"interval_ns = {streams * 6_000 * dice.choice([1, 2, 4, 8])}"]
    return "\n".join(lines) + "\n"


def systems(quick: bool) -> dict[str, str]:
    six = [7, 6, 5, 4, 3, 2]
    all_of_them = {f"windows, {ns} ns": windows(ns) for ns in (400_080, 400_100, 370_080, 370_081)}
    all_of_them |= {
        "90 streams, line of 40 bridges": tree(40, 90, [6], line=True),
        "2,000 streams, tree of 100 bridges": tree(100, 2_000, six),
        "2,000 streams of one class, tree of 100 bridges": tree(100, 2_000, [6]),
        "2,000 streams of one class, line of 100 bridges": tree(100, 2_000, [6], line=True),
        "10,000 streams, tree of 100 bridges": tree(100, 10_000, six),
        "10,000 streams of one class, tree of 100 bridges": tree(100, 10_000, [6]),
    }
    if not quick:
        all_of_them["50,000 streams, tree of 1,000 bridges"] = tree(1_000, 50_000, six)
    return all_of_them


# Scheduled channels and bridges.
SIZES = [(100, 16), (1_000, 100), (5_000, 400), (10_000, 900), (20_000, 900), (45_000, 1_000)]


def timetable(channels: int, bridges: int) -> list[str]:
    """Bridges that are joined in two random circles, each with a host; scheduled channels between any two hosts,
    in frames of about 100 to 500 octets. First what is there without channels, then one text for each of these."""
    dice = random.Random(channels)
    names, hosts = [f"b{at}" for at in range(bridges)], [f"h{at}" for at in range(bridges)]
    lines = ["format = 1", 'name = "plan"', 'routing = "load-aware"', *HEAD[2:]]
    for name in names:
        lines += ["[[bridge]]", f'name = "{name}"', "forwarding_ns = 2000"]
    lines += nodes("host", hosts)
    joined = set()
    for _ in range(2):
        circle = dice.sample(range(bridges), bridges)
        joined |= {tuple(sorted(pair)) for pair in zip(circle, circle[1:] + circle[:1], strict=True)}
    for one, other in sorted(joined):
        lines += link(f"b{one}", f"b{other}", 1000)
    for host, name in zip(hosts, names, strict=True):
        lines += link(host, name, 1000)
    texts = ["\n".join(lines) + "\n"]
    for at in range(channels):
        talker, listener = dice.sample(hosts, 2)
        interval_us = dice.choice([500, 1000, 2000, 4000])
        lines = ["[[channel]]", f'name = "c{at}"', 'class = "scheduled"', f"stream_id = {at + 1}"]
        lines += [f'destination = "91:e0:f0:{at >> 16:02x}:{at >> 8 & 255:02x}:{at & 255:02x}"']
        lines += [f"size_octets = {dice.randrange(60, 460)}", f"interval_ns = {interval_us}_000"]
        lines += [f"fixed_delay_us = {interval_us}", f'talker = "{talker}"', f'listeners = ["{listener}"]']
        texts.append("\n".join(lines) + "\n")
    return texts


def growth(onbeat: str, place: Path, sizes: list[tuple[int, int]]) -> list[dict[str, float]]:
    """`onbeat plan` for more and more scheduled channels; then, with all but the last of them planned, that one."""
    print(f"\n{'scheduled channels, bridges':50} {'s':>8} {'MiB':>6} {'one more, s':>15} {'MiB':>6}")
    rows = []
    for channels, bridges in sizes:
        texts = timetable(channels, bridges)
        before, after, plan = (place / name for name in ("before.toml", "system.toml", "plan.json"))
        before.write_text("".join(texts[:-1]))
        after.write_text("".join(texts))
        with plan.open("w") as file:
            taken([onbeat, "plan", str(before), "--json"], file)
        whole = taken([onbeat, "plan", str(after), "--json"])
        one = taken([onbeat, "plan", str(after), "--json", "--keep", str(plan)])
        row = {"channels": channels, "bridges": bridges, "plan_s": whole[0], "plan_mib": whole[1]}
        rows.append(row | {"one_s": one[0], "one_mib": one[1]})
        name = f"{channels:,}, {bridges:,}"
        print(f"{name:50} {whole[0]:8.3f} {whole[1]:6.0f} {one[0]:15.3f} {one[1]:6.0f}", flush=True)
    return rows


def taken(command: list[str], output: IO[str] | int = subprocess.DEVNULL) -> tuple[float, float]:
    """Processor seconds and MiB of a command; none is run twice, as none of this is short of work."""
    child = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{command} failed: {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the largest")
    parser.add_argument("--onbeat", default=str(TARGET / "dist" / "onbeat"), help="another command")
    arguments = parser.parse_args()
    place = TARGET / "plan"
    place.mkdir(parents=True, exist_ok=True)
    results = {}
    print(f"{'':50} {'s':>8} {'MiB':>6} {'--no-bounds, s':>15} {'MiB':>6}")
    for name, text in systems(arguments.quick).items():
        file = place / "system.toml"
        file.write_text(text)
        check = [arguments.onbeat, "check", str(file)]
        bounds, routes = taken(check), taken([*check, "--no-bounds"])
        results[name] = {"bounds_s": bounds[0], "bounds_mib": bounds[1], "routes_s": routes[0], "routes_mib": routes[1]}
        print(f"{name:50} {bounds[0]:8.3f} {bounds[1]:6.0f} {routes[0]:15.3f} {routes[1]:6.0f}", flush=True)
    rows = growth(arguments.onbeat, place, SIZES[: 4 if arguments.quick else None])
    (place / "growth.svg").write_text(chart(rows))
    results |= {f"{row['channels']:,.0f} scheduled channels": row for row in rows}
    (place / "result.json").write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
