"""Networks of stations, switches and injectors for the hardware's bench: written, run, read."""

from __future__ import annotations

import json
import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

CYCLE_FS = 8_000_000
PPM = 100  # what Ethernet allows a clock
IDLE_LIMIT = 64
ROOT = Path(__file__).resolve().parents[2]
BENCH = Path(os.environ.get("ONBEAT_RTL_BENCH", ROOT / "target" / "hardware" / "bench"))

# Instructions as in docs/network-code.md.
CREATE, SEND, RECEIVE, FUTURE, HALT, SYNC, BRANCH = range(1, 8)
# The station's registers, as in rtl/station/nc_registers.v.
CONTROL, TAGGED, SOURCE, INSTRUCTIONS, BUFFERS = 0x2, 0x3, 0x4, 0x6, 0x7
PROGRAM, BUFFER_ROW, MESSAGE_ROW, MEMORY = 0x100000, 0x200000, 0x300000, 0x400000
MESSAGES = 256


def instruction(operation: int, address: int = 0, operand: int = 0, immediate: int = 0) -> int:
    return operation << 58 | address << 46 | operand << 38 | immediate


@dataclass
class Network:
    """A scenario of the bench. Without `oscillators` all devices have one clock."""

    seed: int = 1
    link_cycles: int = 46
    oscillators: bool = False
    variant: str = "native"
    lines: list[str] = field(default_factory=list)
    # By how much the period of each device with an oscillator is longer.
    ppm: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.lines.append(f"seed {self.seed}")
        # Receive clocks of idle wires change nothing, and need not be simulated.
        self.lines.append(f"idle_limit {IDLE_LIMIT}")

    def device(self, kind: str, name: str) -> str:
        clock = ""
        if self.oscillators:
            self.ppm[name] = self.random.uniform(-PPM, PPM)
            period = round(CYCLE_FS * (1 + self.ppm[name] / 1e6))
            clock = f" period_fs={period} phase_fs={self.random.randrange(CYCLE_FS)}"
        self.lines.append(f"{kind} {name}{clock}")
        return name

    def link(self, a: str, a_port: int, b: str, b_port: int) -> None:
        self.lines.append(f"link {a} {a_port} {b} {b_port} {self.link_cycles * CYCLE_FS}")

    def stream(self, injector: str, name: str, **options: object) -> None:
        words = " ".join(f"{key}={value}" for key, value in options.items())
        self.lines.append(f"stream {injector} {name} {words}")

    def write(self, device: str, address: int, value: int, cycle: int = 0) -> None:
        self.lines.append(f"write {device} {address} {value} {cycle}")

    def read(self, device: str, address: int, name: str) -> None:
        self.lines.append(f"read {device} {address} {name}")

    def load(self, station: str, number: int, program: list[int], messages: dict[int, int],
             outputs: list[int], start: int) -> None:
        """A station's program, its start in a cycle, the words of its messages and outputs."""
        self.write(station, SOURCE, 0x0200)
        self.write(station, SOURCE + 1, number)
        self.write(station, INSTRUCTIONS, len(program))
        self.write(station, BUFFERS, len(outputs))
        place = 0
        for at, words in enumerate(outputs):
            self.write(station, BUFFER_ROW + at, words << 12 | place)
            place += words
        for at in range(place):
            self.write(station, MEMORY + at, self.random.getrandbits(32))
        place = 0
        for at in range(MESSAGES):
            words = messages.get(at, 0)
            self.write(station, MESSAGE_ROW + at, (1 << 21 | words << 12 | place) if words else 0)
            place += words
        # Instructions are resolved by these tables when they are loaded.
        for at, word in enumerate(program):
            self.write(station, PROGRAM + 2 * at, word >> 32)
            self.write(station, PROGRAM + 2 * at + 1, word & 0xFFFFFFFF)
        self.write(station, CONTROL, 1, start)

    def sender(self, name: str, number: int, words: int, interval: int, start: int) -> str:
        """A station that sends one message at each interval; the issues of `create` are watched."""
        self.device("station", name)
        program = [
            instruction(FUTURE, 0, 0, interval),
            instruction(CREATE),
            instruction(SEND, 0, 1),
            instruction(HALT),
        ]
        self.load(name, number, program, {1: words}, [words], start)
        self.lines.append(f"watch {name} 1")
        return name

    def receiver(self, name: str, number: int, words: int) -> str:
        """A station that only listens."""
        self.device("station", name)
        program = [instruction(FUTURE, 0, 0, 10_000), instruction(HALT)]
        self.load(name, number, program, {1: words}, [], 0)
        return name

    def run(self, stop_cycles: int, drain_cycles: int = 20_000) -> dict:
        self.lines.append(f"stop_fs {stop_cycles * CYCLE_FS}")
        self.lines.append(f"drain_fs {drain_cycles * CYCLE_FS}")
        text = "\n".join(self.lines) + "\n"
        command = [str(BENCH / self.variant / "bench")]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stderr or 'accesses were not answered'}")
        return json.loads(done.stdout)


def run_all(jobs: list) -> list:
    """What each function returns: as many at once as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda job: job(), jobs))
