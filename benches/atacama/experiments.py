"""What is measured of stations and switches: each function runs networks and returns plain data."""

from __future__ import annotations

from collections import Counter
from functools import partial

from network import CYCLE_FS, Network, run_all

# The published line, in cycles: 1.272 + 1.576 Ns + 0.032 vl us.
PUBLISHED = (159, 197, 4)
TABLE_1 = {20: (6.64, 6.608), 35: (7.12, 7.088), 70: (8.24, 8.224)}
SWITCHES = 3
# Stations have loaded their programs by then.
START = 4_000
POLICIES = {"retry": 0, "drop": 1, "finish": 2, "qbu": 3}
POLICY, SYNC_PORTS, ROUND_LEAST, ROUND_LIMIT = 0x002, 0x006, 0x007, 0x008
WINDOW_NUMBER, COUNTERS, WINDOWS = 0x010, 0x100, 0x200
COUNTER_NAMES = (
    "rt_in rt_out rt_bad_fcs rt_runts rt_cut collisions guarded be_in be_out be_bad be_runts "
    "be_jumbos be_full aborts retries lost_to_abort slips bad_preambles be_filtered be_in_full "
    "rt_lost preemptions"
).split()
PORTS = 4
# Full rings of three switches are empty by then.
FLUSH = 80_000


def interval_millicycles(mbit_per_s: float, octets: int) -> int:
    """Between the beginnings of frames at a rate that counts the octets of frames."""
    return round(octets * 8 * 1_000_000 / mbit_per_s / 8)


def chain(network: Network, switches: int, policy: int = 0) -> None:
    """Switches in a row: port 3 of each leads to port 0 of the next one."""
    for at in range(switches):
        network.device("switch", f"s{at}")
        network.write(f"s{at}", POLICY, policy)
        if at:
            network.link(f"s{at - 1}", 3, f"s{at}", 0)


def read_counters(network: Network, switches: int) -> None:
    for at in range(switches):
        for port in range(PORTS):
            for number, name in enumerate(COUNTER_NAMES):
                network.read(f"s{at}", COUNTERS + 32 * port + number, f"{name}:{port}")


def counters(result: dict) -> dict[str, dict[str, int]]:
    """Of each switch, what is not 0, by `name:port`."""
    devices = {device["name"]: device["registers"] for device in result["devices"]}
    return {
        name: {key: value for key, value in registers.items() if value}
        for name, registers in devices.items()
        if name.startswith("s")
    }


def pair(network: Network, switches: int, words: int, interval: int) -> None:
    """A station that sends and one that receives, with so many switches between."""
    chain(network, switches)
    network.sender("talker", 1, words, interval, START)
    network.receiver("listener", 2, words)
    if switches:
        network.link("talker", 0, "s0", 0)
        network.link(f"s{switches - 1}", 3, "listener", 0)
    else:
        network.link("talker", 0, "listener", 0)


def best_effort(network: Network, switches: int, mbit_per_s: float, octets: int = 1000) -> None:
    """An injector at each switch that broadcasts, or is silent at a rate of 0."""
    for at in range(switches):
        name = network.device("injector", f"load{at}")
        network.link(name, 0, f"s{at}", 1)
        if not mbit_per_s:
            continue
        network.stream(
            name, "load", length=octets, source=0x020000000100 + at, start=START + 997 * at,
            interval_millicycles=interval_millicycles(mbit_per_s, octets),
        )


def end_to_end(result: dict) -> list[int]:
    """Femtoseconds from each issue of `create` to the last word in the receive buffer."""
    devices = {device["name"]: device for device in result["devices"]}
    issued = devices["talker"]["issued_fs"]
    stored = devices["listener"]["stored_fs"]
    if len(issued) != len(stored):
        raise RuntimeError(f"{len(issued)} frames were created, {len(stored)} stored")
    return [after - before for before, after in zip(issued, stored, strict=True)]


def harm(result: dict) -> dict[str, int]:
    """What must not happen to real-time frames, over all wires and listeners."""
    lost = sum(
        flow["sent"] - sink["received"]
        for flow in result["flows"]
        if flow["type"] == "real-time"
        for sink in flow["sinks"].values()
    )
    wires = result["wires"]
    return {
        "lost": lost,
        "altered": sum(wire["altered"] for wire in wires),
        "least_gap": min((wire["least_gap"] for wire in wires if "least_gap" in wire), default=0),
    }


# --- the latency's model --------------------------------------------------------------------------


def latency_point(variant: str, switches: int, words: int, load: bool) -> dict:
    network = Network(seed=1, variant=variant)
    interval = 4_000 + 8 * words
    pair(network, switches, words, interval)
    if load:
        best_effort(network, switches, 800)
    result = network.run(START + 20 * interval, drain_cycles=4_000)
    cycles = Counter(value // CYCLE_FS for value in end_to_end(result))
    return {"variant": variant, "switches": switches, "words": words, "load": load,
            "cycles": dict(cycles), **harm(result)}


def latency(words: tuple[int, ...] = (1, 2, 5, 12, 13, 20, 35, 70, 150, 372)) -> dict:
    """In one clock domain: a + b Ns + c vl, and how far each point is from it."""
    jobs = [
        partial(latency_point, variant, switches, length, load)
        for variant in ("native", "calibrated")
        for load in (False, True)
        for switches in range(SWITCHES + 1)
        for length in words
    ]
    points = run_all(jobs)
    models = {}
    for variant in ("native", "calibrated"):
        of = {
            (point["switches"], point["words"]): point
            for point in points
            if point["variant"] == variant and not point["load"]
        }
        first, second = words[0], words[-1]
        at = {key: next(iter(point["cycles"])) for key, point in of.items()}
        slope = (at[0, second] - at[0, first]) // (second - first)
        each = at[1, first] - at[0, first]
        base = at[0, first] - slope * first
        residuals = Counter(
            cycles - base - each * point["switches"] - slope * point["words"]
            for point in points
            if point["variant"] == variant
            for cycles in point["cycles"]
        )
        models[variant] = {"base": base, "switch": each, "word": slope,
                           "residuals": dict(residuals)}
    return {"models": models, "published": PUBLISHED, "points": points}


# --- clocks of their own --------------------------------------------------------------------------


def oscillator_point(seed: int, words: int, frames: int, load: bool, variant: str,
                     policy: int = 0) -> dict:
    network = Network(seed=seed, variant=variant, oscillators=True)
    interval = 5_000
    pair(network, SWITCHES, words, interval)
    for at in range(SWITCHES):
        network.write(f"s{at}", POLICY, policy)
    # There in any case: the devices' clocks are the same with load and without.
    best_effort(network, SWITCHES, 800 if load else 0)
    read_counters(network, SWITCHES)
    # Stations do not stop: the end is between two frames, whatever their clocks.
    result = network.run(START + frames * interval, drain_cycles=2_000)
    values = end_to_end(result)
    aborts = sum(
        value
        for registers in counters(result).values()
        for name, value in registers.items()
        if name.startswith("aborts")
    )
    return {"seed": seed, "words": words, "load": load, "frames": len(values),
            "min_fs": min(values), "max_fs": max(values), "aborts": aborts,
            "histogram_ns": dict(sorted(Counter(value // 1_000_000 for value in values).items())),
            "latencies_fs": values, **harm(result)}


def table_1(frames: int = 100) -> list[dict]:
    """Three switches, three ports that broadcast 800 Mbit/s each, 100 frames of each length."""
    jobs = [
        partial(oscillator_point, seed, words, frames, True, "calibrated")
        for words in TABLE_1
        for seed in range(1, 5)
    ]
    points = run_all(jobs)
    rows = []
    for words, (model, observed) in TABLE_1.items():
        of = [point for point in points if point["words"] == words]
        rows.append({
            "words": words, "published_model_us": model, "published_observed_us": observed,
            "frames": sum(point["frames"] for point in of),
            "min_us": min(point["min_fs"] for point in of) / 1e9,
            "max_us": max(point["max_fs"] for point in of) / 1e9,
            "aborts": sum(point["aborts"] for point in of),
            "lost": sum(point["lost"] for point in of),
            "altered": sum(point["altered"] for point in of),
        })
    return rows


def spread(frames: int, seeds: int) -> list[dict]:
    """The same oscillators without and with best effort: frame by frame."""
    jobs = [
        partial(oscillator_point, seed, 20, frames, load, "native")
        for seed in range(1, seeds + 1)
        for load in (False, True)
    ]
    points = run_all(jobs)
    pairs = []
    for quiet, loaded in zip(points[::2], points[1::2], strict=True):
        differences = Counter(
            round((after - before) / CYCLE_FS)
            for before, after in zip(quiet["latencies_fs"], loaded["latencies_fs"], strict=True)
        )
        for point in (quiet, loaded):
            del point["latencies_fs"]
        pairs.append({
            "seed": quiet["seed"], "quiet": quiet, "loaded": loaded,
            "frame_differences_cycles": dict(differences),
            "spread_cycles": (loaded["max_fs"] - loaded["min_fs"]) / CYCLE_FS,
        })
    return pairs


# --- robustness -----------------------------------------------------------------------------------


def figure_4_devices(policy: str, octets: int) -> Network:
    """A generator, three switches, an analyser; a load at the first two switches. The oscillators
    are those of the length of frames."""
    network = Network(seed=octets, oscillators=True)
    chain(network, SWITCHES, POLICIES[policy])
    network.link(network.device("injector", "generator"), 0, "s0", 0)
    network.link("s2", 3, network.device("injector", "analyser"), 0)
    for at in range(2):
        network.link(network.device("injector", f"load{at}"), 0, f"s{at}", 1)
    return network


def figure_4_point(policy: str, octets: int, frames: int) -> dict:
    """Two streams of such frames, 100 us apart, through three switches; two ports that broadcast
    470 Mbit/s each."""
    network = figure_4_devices(policy, octets)
    source = "generator"
    interval = (12_500 + octets + 8) * 1000
    network.stream(source, "real-time", type="rt", length=octets, start=START, count=frames,
                   interval_millicycles=interval, source=0x020000000001)
    network.stream(source, "reference", length=octets, start=START + 6_250, count=frames,
                   interval_millicycles=interval, source=0x020000000001)
    for at in range(2):
        # Drawn delays, so that the streams do not stay in step.
        network.stream(f"load{at}", "load", length=1000, source=0x020000000100 + at, jitter=1_000,
                       interval_millicycles=interval_millicycles(470, 1000))
    read_counters(network, SWITCHES)
    network.lines.append("bin_fs 100000000")
    result = network.run(START + (frames + 1) * interval // 1000, drain_cycles=FLUSH)
    flows = {(flow["from"], flow["name"]): flow for flow in result["flows"]}
    point: dict = {"policy": policy, "octets": octets, "seconds": result["seconds"],
                   "mbit_per_s": octets * 8 / ((interval / 1000) * 8e-3), **harm(result)}
    for name in ("real-time", "reference"):
        flow = flows["generator", name]
        sink = flow["sinks"].get("analyser", {"received": 0})
        point[name] = {"sent": flow["sent"], **{k: v for k, v in sink.items() if k != "histogram"}}
    loads = [flow for (source, name), flow in flows.items() if name == "load"]
    point["load"] = {
        "sent": sum(flow["sent"] for flow in loads),
        "received": sum(flow["sinks"].get("analyser", {"received": 0})["received"]
                        for flow in loads),
    }
    last = next(w for w in result["wires"] if w["from"] == "s2" and w["port"] == 3)
    point["last_link"] = {key: last[key] for key in ("octets", "frames", "cut", "real_time",
                                                       "fragments", "misfits")}
    point["counters"] = counters(result)
    return point


def figure_4(frames: int, octets: tuple[int, ...], policies: tuple[str, ...]) -> list[dict]:
    return run_all(
        [partial(figure_4_point, policy, length, frames) for policy in policies
         for length in octets]
    )
