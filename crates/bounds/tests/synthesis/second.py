"""Judges scheduling problems by CP-SAT, to which the exact method is held.

Reads one problem in each line, as JSON, with all times in nanoseconds; writes for each a line:
`feasible`, `infeasible` or `unknown`. The rules are those at `Placed`, but for the length of gate
control lists. Windows are laid down over the hyperperiod, where the method under test compares
pairs by the greatest common divisor of their periods.
"""

import json
import math
import sys
from collections import defaultdict

from ortools.sat.python import cp_model

# Deterministic seconds, as CP-SAT counts its own work.
LIMIT = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0


def instants(model, problem, flow, name):
    """The release of a flow, and by hop from when to when it is queued and its window."""
    ports, period = problem["ports"], flow["period"]
    release = model.new_int_var(0, period - 1, f"{name} release")
    if flow["release"] is not None:
        model.add(release == flow["release"])
    starts, rows = [], []
    for at, hop in enumerate(flow["hops"]):
        port = ports[hop["port"]]
        tick = port["tick"]
        # No window is later than its deadline, nor is any bound below too narrow.
        latest = (period + flow["deadline"]) // tick
        count = model.new_int_var(0, max(latest, 0), f"{name} hop {at}")
        start = tick * count
        if hop["after"] is None:
            early, late = (release + ready for ready in flow["ready"])
        else:
            before = flow["hops"][hop["after"]]
            other = ports[before["port"]]
            apart = other["clock_error"] + port["clock_error"]
            left = starts[hop["after"]] + before["sent"]
            early = left + other["latency"][0] - apart
            late = left + other["latency"][1] + apart
        model.add(start >= late)
        if not problem["waiting"]:
            model.add(start <= late + tick - 1)
        window = -(-hop["occupies"] // tick) * tick
        model.add(start + window - early <= period)
        if all(other["after"] != at for other in flow["hops"]):
            error, talker = port["clock_error"], ports[flow["hops"][0]["port"]]["clock_error"]
            received = start + hop["sent"] + port["latency"][1] + error + talker
            model.add(received - release <= flow["deadline"])
            varies = port["latency"][1] - port["latency"][0] + 2 * error
            if flow["jitter"] is not None and varies > flow["jitter"]:
                model.add_bool_or([])
        if period % tick:
            model.add_bool_or([])
        starts.append(start)
        rows.append((hop["port"], early, start, window))
    return rows


def lay(model, laid, begin, length, period, is_there, name):
    """Notes an interval that repeats: by its first begin in the hyperperiod."""
    first = model.new_int_var(0, period - 1, f"{name} first")
    turns = model.new_int_var(-8, 64, f"{name} turns")
    model.add(begin == first + period * turns)
    laid.append((first, length, period, is_there, name))


def exclude(model, laid, longest):
    """No two intervals overlap in any hyperperiod: those from its begin on are there again."""
    hyperperiod = math.lcm(*(period for _, _, period, _, _ in laid))
    intervals = []
    for first, length, period, is_there, name in laid:
        for again in range((hyperperiod + longest - 1) // period + 1):
            begin = first + again * period
            if isinstance(length, int) and is_there is None:
                intervals.append(model.new_fixed_size_interval_var(begin, length, name))
                continue
            end = model.new_int_var(0, hyperperiod + 3 * longest + period, f"{name} end")
            model.add(end == begin + length)
            if is_there is None:
                intervals.append(model.new_interval_var(begin, length, end, name))
            else:
                intervals.append(
                    model.new_optional_interval_var(begin, length, end, is_there, name)
                )
    model.add_no_overlap(intervals)


def judge(problem):
    """Whether there is a schedule."""
    model = cp_model.CpModel()
    windows, queues = defaultdict(list), defaultdict(list)
    longest = max(flow["period"] for flow in problem["flows"])
    for number, flow in enumerate(problem["flows"]):
        name, period = f"flow {number}", flow["period"]
        count = min(problem["ports"][hop["port"]]["queues"] for hop in flow["hops"])
        chosen = [model.new_bool_var(f"{name} in queue {queue}") for queue in range(count)]
        model.add_exactly_one(chosen)
        for at, (port, early, start, window) in enumerate(instants(model, problem, flow, name)):
            label = f"{name} at {at}"
            if window > period:
                model.add_bool_or([])
                continue
            lay(model, windows[port], start, window, period, None, label)
            length = model.new_int_var(window, period, f"{label} queued")
            model.add(length == start + window - early)
            for queue, is_chosen in enumerate(chosen):
                is_there = None if count == 1 else is_chosen
                lay(model, queues[port, queue], early, length, period, is_there, label)
    for laid in [*windows.values(), *queues.values()]:
        if len(laid) > 1:
            exclude(model, laid, longest)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = LIMIT
    status = solver.solve(model)
    answers = {
        cp_model.OPTIMAL: "feasible",
        cp_model.FEASIBLE: "feasible",
        cp_model.INFEASIBLE: "infeasible",
        cp_model.UNKNOWN: "unknown",
    }
    if status not in answers:
        raise SystemExit(f"no model: {model.validate()}")
    return answers[status]


for line in sys.stdin:
    print(judge(json.loads(line)), flush=True)
