"""Proves properties of modules, for runs of any length, and that each proof notices a fault.

The properties of a module are the file of its name here, which becomes the end of the module. Yosys
turns both into a circuit of gates; the proof is by property-directed reachability in ABC. A module
with a planted fault must give a counterexample, or its properties say nothing.
"""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

FORMAL = Path(__file__).resolve().parent
RTL = FORMAL.parent
OUT = RTL.parent / "target" / "hardware" / "formal"
# What a proof takes at most; it is unknown then, which fails.
SECONDS = 300


@dataclass(frozen=True)
class Proof:
    """A module; the other files it needs; whether it has two clocks; faults it must notice."""

    module: str
    others: tuple[str, ...] = ()
    clocks: int = 1
    faults: tuple[tuple[str, str], ...] = ()
    # Steps of a bounded proof, of what stands behind BOUNDED; 0: of any length.
    steps: int = 0


PROOFS = (
    Proof("mac/elastic_fifo", clocks=2, faults=(
        # An entry more than there are.
        ("full = used >= 5'd16", "full = used >= 5'd17"),
        # The reader looks at an entry before it is there.
        ("present = level != 5'd0", "present = level != 5'd31"),
        # A pointer that changes two bits at once.
        ("write_gray <= gray(write_pointer + 5'd1)", "write_gray <= write_pointer + 5'd1"),
        # An octet twice.
        ("read_pointer <= rst ? written : read_next",
         "read_pointer <= rst ? written : read_next - {4'd0, give && er}"),
    )),
    # A step is an edge of either clock, or of both.
    Proof("mac/elastic_fifo", clocks=2, steps=40, faults=(
        # An octet in another one's place.
        ("memory[write_pointer[3:0]] <=", "memory[write_pointer[3:0] & 4'd14] <="),
    )),
    Proof("switch/rt_bus", faults=(
        # Whoever asks is let in while another one's frame is on the bus.
        ("grant = open ? first : 4'd0", "grant = state == FREE ? first : 4'd0"),
        # Two of the same cycle.
        ("first = announce & (~announce + 4'd1)", "first = announce"),
        # The owner changes within the frame.
        ("PREAMBLE: begin", "PREAMBLE: begin owner <= owner ^ announce[1:0];"),
    )),
    Proof("switch/port_tx", others=("formal/queue.v", "mac/crc32.v"), faults=(
        # A gap of 11.
        ("localparam [3:0] GAP = 4'd12", "localparam [3:0] GAP = 4'd11"),
        # Best effort begins at once behind a real-time frame.
        ("quiet = idle && !rt_valid && !queue_busy && gap == GAP",
         "quiet = idle && !rt_valid && !queue_busy && (gap == GAP || after_direct)"),
    )),
)


def source(proof, place, fault=None):
    """The module with its properties, and the fault if there is one."""
    text = (RTL / f"{proof.module}.v").read_text(encoding="utf-8")
    if fault:
        if text.count(fault[0]) != 1:
            sys.exit(f"formal: {proof.module} does not have once: {fault[0]}")
        text = text.replace(*fault)
    name = proof.module.split("/")[1]
    properties = (FORMAL / f"{name}.v").read_text(encoding="utf-8")
    head, end, tail = text.rpartition("endmodule")
    path = place / f"{name}.v"
    path.write_text(head + properties + end + tail, encoding="utf-8")
    return path


def called(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def check(proof, number, fault):
    """`proved`, `refuted` or what else was said; seconds."""
    name = proof.module.split("/")[1]
    place = OUT / f"{name}-{proof.steps}-{number}"
    place.mkdir(parents=True, exist_ok=True)
    files = [source(proof, place, fault), *(RTL / other for other in proof.others)]
    clocks = "clk2fflogic" if proof.clocks > 1 else "async2sync; dffunmap"
    script = (
        f"read_verilog -formal {'-DBOUNDED' if proof.steps else ''} {' '.join(map(str, files))}; "
        f"prep -flatten -top {name}; memory_map; "
        f"{clocks}; delete -output o:*; setundef -undriven -anyseq; opt -full; techmap; opt; "
        "dffunmap; "
        f"abc -g AND -fast; opt_clean; write_aiger -zinit {place}/circuit.aig"
    )
    start = time.monotonic()
    made = called("yosys", "-q", "-p", script)
    (place / "yosys.log").write_text(made.stdout + made.stderr, encoding="utf-8")
    if made.returncode:
        return (made.stdout + made.stderr).strip(), time.monotonic() - start
    method = f"bmc3 -F {proof.steps}" if proof.steps else "pdr"
    command = f"read_aiger {place}/circuit.aig; fold; scorr; {method} -T {SECONDS}"
    done = called("yosys-abc", "-c", command)
    (place / "abc.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    seconds = time.monotonic() - start
    if re.search(r"Property proved|Networks are equivalent", done.stdout):
        return "proved", seconds
    if re.search(r"was asserted in frame", done.stdout):
        return "refuted", seconds
    # In a bounded run nothing was found in as many steps as were asked for.
    reached = re.search(r"No output asserted in (\d+) frames", done.stdout)
    if proof.steps and reached and int(reached[1]) >= proof.steps:
        return "proved", seconds
    return "unknown: " + " ".join(done.stdout.strip().splitlines()[-1:]), seconds


def main():
    wanted = sys.argv[1:]
    failures = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            (proof, number, fault, pool.submit(check, proof, number, fault))
            for proof in PROOFS
            if not wanted or proof.module.split("/")[1] in wanted
            for number, fault in enumerate((None, *proof.faults))
        ]
        for proof, number, fault, job in jobs:
            said, seconds = job.result()
            right = said == ("refuted" if fault else "proved")
            length = f"proved for {proof.steps} steps" if proof.steps else "proved"
            what = f"fault {number} noticed" if fault else length
            verdict = what if right else f"FAILED: {said}"
            print(f"{proof.module}: {verdict}, {seconds:.1f} s", flush=True)
            failures += not right
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
