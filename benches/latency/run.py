#!/usr/bin/env python3
"""One-way latency and rate of network channels and of their peers, all in one run.

Builds what is there, joins two network namespaces with a veth pair, and lets each contestant's
talker and listener run there in turn, round by round, so that what else the machine does hits all
alike. Prints the medians over the rounds, and which of the limits are kept; writes all figures as
JSON and a chart as SVG. Nothing is left behind: the namespaces have no name and end with this
program, however it ends. `../README.md` says how to read it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import common  # noqa: E402
from chart import chart  # noqa: E402
from common import READY_S, ROOT, TARGET, Missing, Network, Place  # noqa: E402
from common import command, network, say, table  # noqa: E402
from limits import BASE, Figures, Rounds, close_row, memory_row, paired, rows_of  # noqa: E402

OUT = TARGET / "latency"
DEBIAN = ["gcc", "cmake", "pkg-config", "libzmq3-dev", "cyclonedds-dev", "cyclonedds-tools"]
DRAIN_S = 0.3
MEMORY_CHANNELS = 1_000


# --- building -----------------------------------------------------------------------------------


def compile_c(name: str, *flags: str | Path) -> Path:
    """The program of `peers/NAME.c`."""
    return common.compile_c(OUT / name, [HERE / "bench.c", HERE / "peers" / f"{name}.c"], *flags)


def cyclonedds() -> Path:
    command(["idlc", "-o", OUT, HERE / "peers" / "message.idl"])
    return compile_c("cyclonedds", f"-I{OUT}", OUT / "message.c", "-lddsc")


def zenoh() -> Path:
    target = OUT / "zenoh-target"
    manifest = HERE / "zenoh" / "Cargo.toml"
    cargo = ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", manifest]
    command([*cargo, "--target-dir", target])
    return compile_c("zenoh", target / "release" / "liblatency_zenoh.a")


def open62541() -> Path:
    """The C sources come with the crate that binds them, which leaves PubSub out: so built here."""
    manifest = HERE / "open62541" / "Cargo.toml"
    cargo = ["cargo", "metadata", "--format-version=1", "--locked", "--manifest-path", manifest]
    packages = json.loads(command(cargo))["packages"]
    crate = next(p["manifest_path"] for p in packages if p["name"] == "open62541-sys")
    source = Path(crate).parent / "open62541"
    build = OUT / "open62541-build"
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "BUILD_SHARED_LIBS": "OFF",
        "UA_ENABLE_PUBSUB": "ON",
        "UA_ENABLE_PUBSUB_INFORMATIONMODEL": "OFF",
        "UA_NAMESPACE_ZERO": "REDUCED",
        "UA_LOGLEVEL": "500",
    }
    defines = [f"-D{key}={value}" for key, value in options.items()]
    command(["cmake", "-S", source, "-B", build, *defines])
    command(["cmake", "--build", build, "--parallel", "2"])
    includes = [build / "src_generated", source / "include", source / "plugins" / "include"]
    flags = [f"-isystem{path}" for path in includes]
    return compile_c("open62541", *flags, build / "bin" / "libopen62541.a")


def onbeat() -> Path:
    return compile_c("onbeat", *common.onbeat_flags())


def onbeat_rust() -> Path:
    """Has the project's versions of what both depend on: cargo takes what it needs of the copy."""
    here = HERE / "onbeat"
    shutil.copyfile(ROOT / "Cargo.lock", here / "Cargo.lock")
    cargo = ["cargo", "build", "--release", "--quiet", "--manifest-path", here / "Cargo.toml"]
    command([*cargo, "--target-dir", TARGET])
    return compile_c("onbeat_rust", TARGET / "release" / "liblatency_onbeat.a")


@dataclass(frozen=True)
class Contestant:
    """One row of the table."""

    name: str
    what: str
    build: Callable[[], Path]
    variant: str = ""


def plain(name: str, *flags: str) -> Callable[[], Path]:
    return lambda: compile_c(name, *flags)


# In the order in which they run: those that are measured against BASE close to it.
CONTESTANTS = [
    Contestant("onbeat", "C, blocking read", onbeat),
    Contestant(BASE, "bare AF_PACKET, one blocking call", plain("packet")),
    Contestant("onbeat-rust", "Rust, blocking read", onbeat_rust),
    Contestant("onbeat-many", "C, 16 messages a call, flat out", onbeat, "many"),
    Contestant("onbeat-selector-1", "C, UDP, a selector of 1", onbeat, "udp-selector-1"),
    Contestant("onbeat-selector-1000", "C, UDP, a selector of 1,000", onbeat, "udp-selector-1000"),
    Contestant("onbeat-crc", "C, blocking read, with a CRC", onbeat, "crc"),
    Contestant("onbeat-auth", "C, blocking read, authenticated", onbeat, "authenticated"),
    Contestant("onbeat-schedule", "C, follows the schedule", onbeat, "schedule"),
    Contestant("onbeat-xdp", "C, AF_XDP", onbeat, "xdp"),
    Contestant("onbeat-xdp-schedule", "C, AF_XDP, follows the schedule", onbeat, "xdp-schedule"),
    Contestant("onbeat-udp", "C, UDP over IPv4", onbeat, "udp"),
    Contestant("packet-60us", "bare, spins from 60 us before it is due", plain("packet"), "60"),
    Contestant("pipe", "model of the pipe-and-worker design", plain("pipe")),
    Contestant("udp", "plain UDP, blocking", plain("udp")),
    Contestant("zeromq", "ZeroMQ PUB/SUB over TCP", plain("zeromq", "-lzmq")),
    Contestant("cyclonedds", "CycloneDDS, best effort, callback", cyclonedds),
    Contestant("zenoh", "zenoh over TCP, callback", zenoh),
    Contestant("open62541", "OPC UA PubSub, UADP over UDP multicast", open62541),
]


def build(contestants: list[Contestant]) -> tuple[dict[str, Path], dict[str, str]]:
    """The programs by contestant, and what is missing, with the reason."""
    OUT.mkdir(parents=True, exist_ok=True)
    built: dict[str, Path] = {}
    missing: dict[str, str] = {}
    known: dict[Callable[[], Path], Path | Missing] = {}
    for contestant in contestants:
        say(f"building {contestant.name}")
        if contestant.build not in known:
            try:
                known[contestant.build] = contestant.build()
            except Missing as reason:
                known[contestant.build] = reason
        match known[contestant.build]:
            case Path() as path:
                built[contestant.name] = path
            case reason:
                missing[contestant.name] = f"not built: {reason}"
    return built, missing


# --- running ------------------------------------------------------------------------------------


def run_pair(
    binary: Path, variant: str, period_ns: int, seconds: float, net: Network, place: Place
) -> Figures:
    """One round of one contestant: the figures of both of its sides."""
    words = [str(period_ns), str(int(seconds * 1e9)), *([variant] if variant else [])]
    on = place.words(paced=period_ns > 0)
    listener = subprocess.Popen(
        [*net.listener, *on[1], str(binary), "listener", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        common.wait_until_ready(listener, "the listener")
        talker = [*net.talker, *on[0], str(binary), "talker", *words]
        sent = json.loads(command(talker, timeout=seconds + READY_S))
        time.sleep(DRAIN_S)
        listener.send_signal(signal.SIGTERM)
        output, errors = listener.communicate(timeout=READY_S)
    except subprocess.TimeoutExpired:
        raise Missing("one side did not end in time") from None
    finally:
        listener.kill()
        listener.wait()
    if listener.returncode:
        raise Missing(f"the listener: {errors.strip() or listener.returncode}")
    return figures(sent, json.loads(output))


def figures(sent: Figures, received: Figures) -> Figures:
    """What a round says, of what both sides counted."""
    if not sent["count"]:
        raise Missing("no message was sent")
    if not received["count"]:
        raise Missing(f"of {sent['count']} messages none arrived")
    result = {key: value for key, value in received.items() if key.endswith("_ns")}
    result |= {
        "sent": sent["count"],
        "lost": sent["count"] - received["count"],
        "sent_per_s": sent["count"] / max(sent["duration_ns"], 1) * 1e9,
        "received_per_s": received["count"] / max(received["duration_ns"], 1) * 1e9,
    }
    for side, own in (("talker", sent), ("listener", received)):
        switches = own["voluntary"] + own["involuntary"]
        result[f"{side}_switches_per_message"] = switches / own["count"]
        result[f"{side}_waits_per_message"] = own["voluntary"] / own["count"]
        result[f"{side}_cpu_ns_per_message"] = own["cpu_ns"] / own["count"]
        result[f"{side}_core_percent"] = own["cpu_ns"] / max(own["duration_ns"], 1) * 100
    return result


def twice(words: tuple[Path, str, int, float, Network, Place]) -> Figures | Missing:
    """A round; one that fails is tried again, and that is said: the machine may have stalled."""
    try:
        return run_pair(*words)
    except Missing as reason:
        print(f"\ntried again: {reason}", file=sys.stderr)
    try:
        return run_pair(*words)
    except Missing as reason:
        return reason


def run_rounds(
    built: dict[str, Path],
    missing: dict[str, str],
    period_ns: int,
    rounds: int,
    seconds: float,
    place: Place,
) -> Rounds:
    """All contestants in turn, `rounds` times, every other time in reverse, so that what changes
    slowly favours nobody. One that fails is named in `missing` and runs no more."""
    kind = f"every {period_ns // 1000} us" if period_ns else "flat out"
    results: Rounds = {}
    with network() as net:
        for number in range(rounds):
            for contestant in CONTESTANTS[:: 1 if number % 2 == 0 else -1]:
                name = contestant.name
                if name not in built or name in missing:
                    continue
                say(f"{kind}, round {number + 1} of {rounds}: {name}")
                words = (built[name], contestant.variant, period_ns, seconds, net, place)
                one = twice(words)
                if isinstance(one, Missing):
                    missing[name] = f"did not run ({kind}): {one}"
                else:
                    results.setdefault(name, []).append(one)
    return results


def medians(rounds: Rounds) -> dict[str, Figures]:
    return {
        name: {key: median(one[key] for one in all_) for key in all_[0]}
        for name, all_ in rounds.items()
    }


def measure_memory() -> dict[str, Figures]:
    """What a thousand open ends take, in each of three runs of the program that opens them, and how
    long closing them takes."""
    binary = common.compile_c(OUT / "memory", [HERE / "memory.c"], *common.onbeat_flags())
    with network() as net:
        runs = [
            json.loads(command([*net.listener, binary, str(MEMORY_CHANNELS)])) for _ in range(3)
        ]
    return {key: median(one[key] for one in runs) for key in runs[0]}


# --- telling ------------------------------------------------------------------------------------


def times(rounds: Rounds, name: str, key: str) -> str:
    """How many times the base's figure it is."""
    ratios = paired(rounds, name, key, BASE)
    return f"{median(ratios):.2f}" if ratios else "-"


def in_order(rounds: Rounds) -> list[tuple[str, str]]:
    """Names and descriptions of those that ran, the base first."""
    ran = [c for c in CONTESTANTS if c.name in rounds]
    return [(c.name, c.what) for c in sorted(ran, key=lambda c: c.name != BASE)]


def paced_table(rounds: Rounds) -> str:
    head = "|min|p50|p90|p99|max us|p50 x|p99 x|lost|switches t/l|core % t/l|".split("|")
    rows = []
    for name, what in in_order(rounds):
        f = medians(rounds)[name]
        latency = [f"{f[k] / 1000:.1f}" for k in "min_ns p50_ns p90_ns p99_ns max_ns".split()]
        ratios = [times(rounds, name, key) for key in ("p50_ns", "p99_ns")]
        switches = [f"{f[f'{side}_switches_per_message']:.2f}" for side in ("talker", "listener")]
        cores = [f"{f[f'{side}_core_percent']:.1f}" for side in ("talker", "listener")]
        both = [" / ".join(switches), " / ".join(cores)]
        rows.append([name, *latency, *ratios, f"{f['lost']:.0f}", *both, what])
    return table(head, rows)


def flat_table(rounds: Rounds) -> str:
    head = "|sent/s|x|received/s|x|lost %|switches t/l|cpu ns t/l|".split("|")
    rows = []
    for name, what in in_order(rounds):
        f = medians(rounds)[name]
        switches = [f"{f[f'{side}_switches_per_message']:.3f}" for side in ("talker", "listener")]
        cpu = [f"{f[f'{side}_cpu_ns_per_message']:.0f}" for side in ("talker", "listener")]
        both = [" / ".join(switches), " / ".join(cpu)]
        rates: list[str] = []
        for key in ("sent_per_s", "received_per_s"):
            rates += [f"{f[key]:.0f}", times(rounds, name, key)]
        lost = f["lost"] / f["sent"] * 100
        rows.append([name, *rates, f"{lost:.2f}", *both, what])
    return table(head, rows)


def limits_table(paced: Rounds, flat: Rounds, memory: Figures | None) -> str:
    rows = rows_of(paced, flat)
    if memory:
        rows += [memory_row(memory), close_row(memory)]
    return table(["limit", "wanted", "got", "rounds", ""], rows)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names, separated by commas; `packet` is always there")
    parser.add_argument("--period-us", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2, help="of a paced round")
    parser.add_argument("--flat-seconds", type=float, default=1, help="of one flat out; 0: none")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 1 s and 0.5 s")
    common.add_place(parser)
    parser.add_argument("--install", action="store_true", help="install the peers' Debian packages")
    parser.add_argument("--json", type=Path, default=OUT / "result.json")
    parser.add_argument("--svg", type=Path, default=OUT / "latency.svg")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.seconds, chosen.flat_seconds = 3, 1.0, 0.5
    return chosen


def main() -> int:
    chosen = options()
    common.check_place()
    if chosen.install:
        command(["apt-get", "install", "--yes", "--no-install-recommends", *DEBIAN])
    place = common.place_of(chosen)
    names = {BASE, *chosen.only.split(",")} if chosen.only else {c.name for c in CONTESTANTS}
    built, missing = build([c for c in CONTESTANTS if c.name in names])
    rounds = chosen.rounds
    paced = run_rounds(built, missing, chosen.period_us * 1000, rounds, chosen.seconds, place)
    flat: Rounds = {}
    if chosen.flat_seconds:
        flat = run_rounds(built, missing, 0, rounds, chosen.flat_seconds, place)
    memory = None
    try:
        say("memory of a thousand channels")
        memory = measure_memory()
    except Missing as reason:
        missing["memory"] = f"not measured: {reason}"
    say("")
    print(f"one-way latency in us, 64 octets every {chosen.period_us} us, medians of {rounds}")
    print(f"rounds of {chosen.seconds} s, {place}\n")
    print(paced_table(paced))
    if flat:
        print(f"\nflat out, medians of {rounds} rounds of {chosen.flat_seconds} s\n")
        print(flat_table(flat))
    print(f"\nlimits\n\n{limits_table(paced, flat, memory)}\n")
    for name, reason in missing.items():
        print(f"{name}: {reason}")
    if any(reason.startswith("not built") for reason in missing.values()):
        print("what Debian and Ubuntu have of that comes with --install")
    settings = {"period_us": chosen.period_us, "seconds": chosen.seconds, "place": str(place)}
    result = {"machine": common.machine(), "settings": settings, "missing": missing}
    result |= {"paced": medians(paced), "flat": medians(flat), "memory": memory}
    result |= {"paced_rounds": paced, "flat_rounds": flat}
    chosen.json.write_text(json.dumps(result, indent=1) + "\n")
    ordered = in_order(paced)
    chosen.svg.write_text(chart({name: medians(paced)[name] for name, _ in ordered}, dict(ordered)))
    print(f"all rounds: {chosen.json}; chart: {chosen.svg}")
    return 0 if BASE in paced else 1


if __name__ == "__main__":
    common.run("latency", main)
