"""Ports that send what they must not: what is counted, who is harmed, what works afterwards."""

from __future__ import annotations

from functools import partial

from experiments import (
    COUNTER_NAMES,
    FLUSH,
    POLICIES,
    PORTS,
    ROUND_LEAST,
    ROUND_LIMIT,
    START,
    SYNC_PORTS,
    WINDOW_NUMBER,
    WINDOWS,
    chain,
    counters,
    read_counters,
)
from network import Network, run_all

SWITCHES = 2
PERIOD = 5_000
ROUNDS = 20
PHASES = ("before", "during", "after")
# Of the attacker's real-time frames, behind the victim's in its period.
SLOT = 2_500
ATTACKER_PORT = 1

# With windows the victim begins a round before each of its frames. A window counts from the SFD of
# the beginning to the first octet of a preamble.
SYNC_BEFORE = 1_000
PLACE = SYNC_BEFORE - 7
VICTIM_LENGTH = 102
# What crossings of clocks and the drift in a round may take; and in a run, as the attacker does not
# follow rounds.
MARGIN = 4
DRIFT = 100
VICTIM_WINDOW = (PLACE - MARGIN, PLACE + 8 + VICTIM_LENGTH + MARGIN)
ATTACKER_WINDOW = (PLACE + SLOT - DRIFT, PLACE + SLOT + 8 + 102 + DRIFT)
CLOSED = (0, 0)

NOTHING: dict = {"sent": 0, "sinks": {}}
Options = dict[str, object]
# What the attacker sends; the names in WINDOWED are also run with windows.
ATTACKS: dict[str, Options] = {
    "none": {},
    "babbling station": {"type": "rt", "length": 64},
    "babbling station, longest frames": {"type": "rt", "length": 1522},
    "babbling station, with pauses": {"type": "rt", "length": 64, "gap": 250},
    "beginnings of rounds": {"type": "sync", "length": 64},
    "real time, 1,522 octets": {"type": "rt", "length": 1522, "at": SLOT},
    "two senders, later by 60 cycles": {"type": "rt", "length": 102, "at": 60},
    "two senders, earlier by 60 cycles": {"type": "rt", "length": 102, "at": -60},
    "real time, bad FCS": {"type": "rt", "length": 102, "at": SLOT, "fault": "fcs"},
    "real time, TX_ER": {"type": "rt", "length": 102, "at": SLOT, "fault": "error"},
    "real time, runts": {"type": "rt", "length": 20, "most_length": 63, "at": SLOT},
    "real time, 2,400 octets": {"type": "rt", "length": 2400, "at": SLOT},
    "real time without end": {"type": "rt", "length": ROUNDS * PERIOD},
    "bad FCS": {"length": 1000, "fault": "fcs"},
    "TX_ER": {"length": 1000, "fault": "error"},
    "runts": {"length": 1, "most_length": 63},
    "jumbos": {"length": 1523, "most_length": 9000},
    "without end": {"length": ROUNDS * PERIOD},
    "no preamble": {"length": 500, "fault": "preamble"},
    "smallest frames at line rate": {"length": 64},
    "longest frames at line rate": {"length": 1522},
}
WINDOWED = (
    "none",
    "babbling station",
    "babbling station, longest frames",
    "babbling station, with pauses",
    "beginnings of rounds",
    "two senders, later by 60 cycles",
    "two senders, earlier by 60 cycles",
    "real time, 1,522 octets",
    "real time without end",
)


# Under the policy QBU, without windows: these presume a constant latency.
PREEMPTED = ("none", "babbling station", "bad FCS", "runts", "jumbos", "without end",
             "smallest frames at line rate", "longest frames at line rate")


def phases(network: Network, device: str, offset: int, **options: object) -> None:
    """The same frames before, during and after the attack, as streams of their own."""
    for number, phase in enumerate(PHASES):
        network.stream(device, f"{options.get('type', 'be')}-{phase}", count=ROUNDS,
                       start=START + number * ROUNDS * PERIOD + offset,
                       interval_millicycles=PERIOD * 1000, **options)


def add_attack(network: Network, options: Options) -> None:
    """In the middle phase; and good frames of both kinds in the last one."""
    begin = START + ROUNDS * PERIOD
    words = dict(options)
    slotted = "at" in words
    at = int(str(words.pop("at", 0)))
    one = int(str(words.get("length", 0))) >= ROUNDS * PERIOD
    if words and slotted:
        network.stream("attacker", "attack", start=begin + at, count=ROUNDS, exact=1,
                       interval_millicycles=PERIOD * 1000, source=0x020000000009, **words)
    elif words:
        # As fast as the wire allows, for the phase.
        least = int(str(words["length"]))
        mean = (least + int(str(words.get("most_length", least)))) // 2
        gap = int(str(words.get("gap", 12)))
        count = 1 if one else ROUNDS * PERIOD // (mean + 8 + gap)
        network.stream("attacker", "attack", start=begin, count=count, source=0x020000000009,
                       **words)
    after = START + (2 * ROUNDS + 2) * PERIOD
    network.stream("attacker", "rt-probe", type="rt", length=102, start=after + SLOT, count=10,
                   interval_millicycles=PERIOD * 1000, source=0x020000000009)
    network.stream("attacker", "be-probe", length=500, start=after, count=10,
                   interval_millicycles=PERIOD * 1000, source=0x020000000009)


def set_windows(network: Network) -> None:
    """Each port's windows: those of the stations behind it, or one in which nothing passes."""
    both = [VICTIM_WINDOW, ATTACKER_WINDOW]
    of = {("s0", 0): [VICTIM_WINDOW], ("s0", ATTACKER_PORT): [ATTACKER_WINDOW], ("s1", 0): both}
    for at in range(SWITCHES):
        network.write(f"s{at}", SYNC_PORTS, 1)
        network.write(f"s{at}", ROUND_LEAST, PERIOD - 10)
        network.write(f"s{at}", ROUND_LIMIT, PERIOD + 20)
        for port in range(PORTS):
            windows = of.get((f"s{at}", port), [CLOSED])
            for number, window in enumerate(windows):
                for side, place in enumerate(window):
                    network.write(f"s{at}", WINDOWS + 64 * port + 2 * number + side, place)
            network.write(f"s{at}", WINDOW_NUMBER + port, len(windows))
    network.stream("talker", "beginnings", type="sync", length=64, exact=1, count=3 * ROUNDS,
                   start=START - SYNC_BEFORE, interval_millicycles=PERIOD * 1000,
                   source=0x020000000001)


def attack(name: str, windows: bool = False, policy: str = "retry") -> dict:
    options = ATTACKS[name]
    network = Network(seed=5, oscillators=True)
    chain(network, SWITCHES, POLICIES[policy])
    for device in ("talker", "listener", "attacker", "client", "server"):
        network.device("injector", device)
    network.link("talker", 0, "s0", 0)
    network.link("attacker", 0, "s0", ATTACKER_PORT)
    network.link("client", 0, "s0", 2)
    network.link("s1", 3, "listener", 0)
    network.link("s1", 1, "server", 0)
    phases(network, "talker", 0, type="rt", length=VICTIM_LENGTH, exact=1,
           source=0x020000000001)
    phases(network, "client", 700, length=800, source=0x020000000002)
    add_attack(network, options)
    if windows:
        set_windows(network)
    read_counters(network, SWITCHES)
    result = network.run(START + 3 * ROUNDS * PERIOD, drain_cycles=FLUSH)
    flows = {(flow["from"], flow["name"]): flow for flow in result["flows"]}
    return {
        "attack": name + ", windows" * windows + ", QBU" * (policy == "qbu"),
        "sent": flows.get(("attacker", "attack"), NOTHING)["sent"],
        "real_time": {p: seen(flows["talker", f"rt-{p}"], "listener") for p in PHASES},
        "best_effort": {p: seen(flows["client", f"be-{p}"], "server") for p in PHASES},
        "beginnings": seen(flows.get(("talker", "beginnings"), NOTHING), "listener"),
        "rt_probe": seen(flows["attacker", "rt-probe"], "listener"),
        "be_probe": seen(flows["attacker", "be-probe"], "server"),
        "arrived": seen(flows.get(("attacker", "attack"), NOTHING), "listener"),
        "misfits": sum(wire["misfits"] for wire in result["wires"]),
        "altered": sum(wire["altered"] for wire in result["wires"] if wire["to"] == "listener"),
        "least_gap": min(wire.get("least_gap", 99) for wire in result["wires"]
                         if wire["from"] in ("s0", "s1")),
        "counters": {
            key: counters(result)["s0"].get(f"{key}:{ATTACKER_PORT}", 0) for key in COUNTER_NAMES
        },
    }


def seen(flow: dict, sink: str) -> dict:
    found = flow["sinks"].get(sink, {"received": 0, "min_fs": 0, "max_fs": 0})
    return {"sent": flow["sent"], **{k: v for k, v in found.items() if k != "histogram"}}


def all_attacks() -> list[dict]:
    jobs = [partial(attack, name) for name in ATTACKS]
    jobs += [partial(attack, name, windows=True) for name in WINDOWED]
    return run_all(jobs + [partial(attack, name, policy="qbu") for name in PREEMPTED])
