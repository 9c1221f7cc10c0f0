"""Fig. 4 in the engine: the traffic of `experiments.figure_4_point` through switches with a
dedicated path, and through TSN bridges, as descriptions that `onbeat nc simulate` runs."""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from common import TARGET, say
from experiments import START, SWITCHES, figure_4_devices

ONBEAT = Path(os.environ.get("ONBEAT", TARGET / "release" / "onbeat"))
HOSTS = ("generator", "analyser", "load0", "load1")
# How bridges handle what is in the way of real time.
DEDICATED = ("retry", "drop", "finish")
TSN = ("strict priority", "preemption", "gates")
CYCLE = 8
LINK = 46 * CYCLE
# The hardware's: docs/description.md.
FORWARDING = 136
RING = (256, 16_384)
# Issue of `create` in cycle 2 of the first interval, and 8 cycles to the first octet.
FIRST = 10 * CYCLE
# 470 Mbit/s of 1,000 octets, with drawn delays.
LOAD_INTERVAL, LOAD_JITTER = 17_021, 8_000
PREAMBLE, GAP = 8, 12
SEEDS = range(1, 6)
PPB = 100_000  # what Ethernet allows a clock


def interval_cycles(octets: int) -> int:
    """From a frame of one of both streams to its next one: 100 us and the frame."""
    return 12_500 + octets + PREAMBLE


def gates(octets: int, number: int) -> str:
    """Only real time may leave the port of a bridge while its frame does, if nothing delays it."""
    wire = (PREAMBLE + octets) * CYCLE
    queued = FIRST + (number + 1) * (wire + LINK + FORWARDING)
    window = wire + GAP * CYCLE
    rest = interval_cycles(octets) * CYCLE - window
    return (f"gates = [{{ base_time_ns = {queued}, entries = [\n"
            f"    {{ open = [7], interval_ns = {window} }},\n"
            f"    {{ open = [0, 1, 2, 3, 4, 5, 6], interval_ns = {rest} }},\n] }}]\n")


def drifts(octets: int, *, like: bool) -> dict[str, int]:
    """In ppb, of each host: drawn, or those that the hardware has had. Which frames of the load
    meet real time is a matter of parts per million where one interval is nearly a multiple of the
    other, as at 258 octets."""
    if like:
        ppm = figure_4_devices("retry", octets).ppm
        return {name: round(-1000 * ppm[name]) for name in HOSTS}
    oscillators = random.Random(octets)
    return {name: oscillators.randint(-PPB, PPB) for name in HOSTS}


def description(kind: str, octets: int, seed: int, *, like: bool) -> str:
    """Three bridges in a row, a generator before and an analyser behind, loads at the first two."""
    lines = [f'format = 1\nname = "figure-4"\n[run]\nduration_s = 1\nseed = {seed}\n']
    for name, drift in drifts(octets, like=like).items():
        # Those whose gates have to fit each other share a time.
        if kind == "gates" and name in ("generator", "analyser"):
            drift = 0
        lines.append(f'[[host]]\nname = "{name}"\nclock = {{ drift_ppb = {drift} }}\n')
    for at in range(SWITCHES):
        lines.append(f'[[bridge]]\nname = "s{at}"\nforwarding_ns = {FORWARDING}\n'
                     f"queue_frames = {RING[0]}\nqueue_octets = {RING[1]}\n")
        if kind in DEDICATED:
            lines.append(f'dedicated_path = {{ on_best_effort = "{kind}" }}\n')
    ends = [("generator", "s0.in"), ("load0", "s0.load"), ("load1", "s1.load")]
    names = [*(f"s{at}" for at in range(SWITCHES)), "analyser"]
    for at in range(SWITCHES):
        behind = f"{names[at + 1]}.in" if at + 1 < SWITCHES else "analyser"
        ends.append((f"s{at}.on", behind))
    for a, b in ends:
        lines.append(f'[[link]]\nends = ["{a}", "{b}"]\nrate_mbps = 1000\n'
                     f"propagation_ns = {LINK}\n")
    for at in range(SWITCHES):
        if kind == "preemption":
            lines.append(f'[[port]]\nname = "s{at}.on"\npreemptable = [0]\n')
        if kind == "gates":
            lines.append(f'[[port]]\nname = "s{at}.on"\n{gates(octets, at)}')
    interval = interval_cycles(octets) * CYCLE
    # There, loads begin before the two streams.
    phase = -START * CYCLE % LOAD_INTERVAL if like else 0
    streams = [
        ("reference", "generator", octets, f"interval_ns = {interval}\nphase_ns = {6_250 * CYCLE}"),
        *((f"load{at}", f"load{at}", 1000,
           f"interval_ns = {LOAD_INTERVAL}\njitter_ns = {LOAD_JITTER}\nphase_ns = {phase}")
          for at in range(2)),
    ]
    for name, talker, length, source in streams:
        lines.append(f'[[stream]]\nname = "{name}"\ntalker = "{talker}"\nlisteners = ["analyser"]\n'
                     f"traffic_class = 0\nframe_octets = {length}\n{source}\n")
    return "".join(lines)


def programs(octets: int) -> dict[str, str]:
    """A station that sends one message in each interval, and one that takes it."""
    words = (octets - 22) // 4
    loop = f"begin:\n    future begin, {interval_cycles(octets)} cycles\n"
    return {
        "generator": f"station generator\noutput value[{words}]\nmessage value = 1[{words}]\n{loop}"
                     "    create value\n    send value\n    halt\n",
        "analyser": f"station analyser\ninput value[{words}]\nmessage value = 1[{words}]\n{loop}"
                    "    receive value, value\n    halt\n",
    }


def point(kind: str, octets: int, frames: int, seed: int, *, like: bool = False) -> dict:
    """So many frames of each of both streams. Latencies are from first octet to first octet."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        text = description(kind, octets, seed, like=like)
        (place / "system.toml").write_text(text, encoding="utf-8")
        for station, text in programs(octets).items():
            (place / f"{station}.nc").write_text(text, encoding="utf-8")
        duration = frames * interval_cycles(octets) * CYCLE
        words = [ONBEAT, "nc", "simulate", "--unprotected", place, place / "generator.nc",
                 place / "analyser.nc", "--json", "--start-within", "1ns", "--write-every", "1s",
                 "--duration", f"{duration}ns", "--seed", str(seed)]
        begin = time.monotonic()
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              check=False)
        seconds = time.monotonic() - begin
    # 3: a frame of a station was lost or had to wait, which is what is measured.
    if done.returncode not in (0, 3):
        raise RuntimeError(f"{kind}, {octets} octets: {done.stderr}")
    row = {"kind": kind, "octets": octets, "seed": seed, "like_hardware": like,
           "seconds": round(seconds, 1)}
    return row | read(json.loads(done.stdout), octets)


def read(found: dict, octets: int) -> dict:
    """What of it is drawn, and the counts."""
    wire = (PREAMBLE + octets) * CYCLE
    listener = found["messages"][0]["listeners"][0]
    real_time = {"sent": listener["sent"], "received": listener["arrived"]}
    real_time |= {f"{key}_ns": value - wire for key, value in listener["wire_latency_ns"].items()}
    streams = {stream["name"]: stream for stream in found["streams"]}
    row: dict = {"mbit_per_s": octets * 8_000 / (interval_cycles(octets) * CYCLE),
                 "real-time": real_time}
    for name in ("reference", "load0", "load1"):
        had = streams[name]["listeners"][0]
        of = {"sent": streams[name]["released"], "received": had["received"],
              "overflowed": had["overflowed"], "aborted": had["aborted"]}
        if name == "reference" and had["latency_ns"]:
            of |= {f"{key}_ns": value - wire for key, value in had["latency_ns"].items()}
        row[name] = of
    row["ports"] = {port["name"]: port["dedicated"] for port in found["ports"] if port["dedicated"]}
    return row


def figure_4(frames: int, octets: tuple[int, ...], hardware: list[dict]) -> list[dict]:
    """All kinds, all lengths. `frames` are of each kind, shared by the lengths. And each point of
    the hardware with as many frames as that has had."""
    each = max(1, frames // len(octets))
    jobs = [partial(point, kind, length, each, 1) for kind in (*DEDICATED, *TSN)
            for length in octets]
    jobs += [partial(point, of["policy"], of["octets"], of["real-time"]["sent"], seed, like=True)
             for of in hardware for seed in SEEDS]
    done = 0

    def run(job: partial) -> dict:
        nonlocal done
        row = job()
        done += 1
        say(f"policies: {done} of {len(jobs)}: {row['kind']}, {row['octets']} octets, "
            f"{row['seconds']} s")
        return row

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(run, jobs))
