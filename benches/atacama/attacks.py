"""Ports that send what they must not: what is counted, who is harmed, what works afterwards."""

from __future__ import annotations

from functools import partial

from experiments import COUNTER_NAMES, FLUSH, GUARDIAN, START, chain, counters, read_counters
from network import Network, run_all

SWITCHES = 2
PERIOD = 5_000
ROUNDS = 20
PHASES = ("before", "during", "after")
# Of the attacker's real-time frames, behind the victim's in its period.
SLOT = 2_500
ATTACKER_PORT = 1

Options = dict[str, object]
# What the attacker sends, and what guardian its port has (cycles of a frame, frames saved up).
ATTACKS: dict[str, tuple[Options, tuple[int, int] | None]] = {
    "none": ({}, None),
    "babbling station": ({"type": "rt", "length": 64}, None),
    "babbling station, guardian": ({"type": "rt", "length": 64}, (PERIOD - 100, 1)),
    "two senders, later by 60 cycles": ({"type": "rt", "length": 102, "at": 60}, None),
    "two senders, earlier by 60 cycles": ({"type": "rt", "length": 102, "at": -60}, None),
    "real time, bad FCS": ({"type": "rt", "length": 102, "at": SLOT, "fault": "fcs"}, None),
    "real time, TX_ER": ({"type": "rt", "length": 102, "at": SLOT, "fault": "error"}, None),
    "real time, runts": ({"type": "rt", "length": 20, "most_length": 63, "at": SLOT}, None),
    "real time, 2,400 octets": ({"type": "rt", "length": 2400, "at": SLOT}, None),
    "real time without end": ({"type": "rt", "length": ROUNDS * PERIOD}, None),
    "bad FCS": ({"length": 1000, "fault": "fcs"}, None),
    "TX_ER": ({"length": 1000, "fault": "error"}, None),
    "runts": ({"length": 1, "most_length": 63}, None),
    "jumbos": ({"length": 1523, "most_length": 9000}, None),
    "without end": ({"length": ROUNDS * PERIOD}, None),
    "no preamble": ({"length": 500, "fault": "preamble"}, None),
    "smallest frames at line rate": ({"length": 64}, None),
    "longest frames at line rate": ({"length": 1522}, None),
}


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
        count = 1 if one else ROUNDS * PERIOD // (mean + 20)
        network.stream("attacker", "attack", start=begin, count=count, source=0x020000000009,
                       **words)
    after = START + (2 * ROUNDS + 2) * PERIOD
    network.stream("attacker", "rt-probe", type="rt", length=102, start=after + SLOT, count=10,
                   interval_millicycles=PERIOD * 1000, source=0x020000000009)
    network.stream("attacker", "be-probe", length=500, start=after, count=10,
                   interval_millicycles=PERIOD * 1000, source=0x020000000009)


def attack(name: str) -> dict:
    options, guardian = ATTACKS[name]
    network = Network(seed=5, oscillators=True)
    chain(network, SWITCHES)
    for device in ("talker", "listener", "attacker", "client", "server"):
        network.device("injector", device)
    network.link("talker", 0, "s0", 0)
    network.link("attacker", 0, "s0", ATTACKER_PORT)
    network.link("client", 0, "s0", 2)
    network.link("s1", 3, "listener", 0)
    network.link("s1", 1, "server", 0)
    phases(network, "talker", 0, type="rt", length=102, exact=1, source=0x020000000001)
    phases(network, "client", 700, length=800, source=0x020000000002)
    add_attack(network, options)
    if guardian:
        network.write("s0", GUARDIAN + 2 * ATTACKER_PORT, guardian[0])
        network.write("s0", GUARDIAN + 2 * ATTACKER_PORT + 1, guardian[1])
    read_counters(network, SWITCHES)
    result = network.run(START + 3 * ROUNDS * PERIOD, drain_cycles=FLUSH)
    flows = {(flow["from"], flow["name"]): flow for flow in result["flows"]}
    return {
        "attack": name,
        "sent": flows.get(("attacker", "attack"), {"sent": 0})["sent"],
        "real_time": {p: seen(flows["talker", f"rt-{p}"], "listener") for p in PHASES},
        "best_effort": {p: seen(flows["client", f"be-{p}"], "server") for p in PHASES},
        "rt_probe": seen(flows["attacker", "rt-probe"], "listener"),
        "be_probe": seen(flows["attacker", "be-probe"], "server"),
        "arrived": seen(flows.get(("attacker", "attack"), {"sent": 0, "sinks": {}}), "listener"),
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
    return run_all([partial(attack, name) for name in ATTACKS])
