"""Fig. 4 of the engine as a picture, with the points of the hardware where it is the same
experiment."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from chart import BLUE, GREY, ORANGE, Panel, line, svg, text
from model import DEDICATED, SEEDS, TSN

LEFT, STEP, WIDTH, ROW = 60, 270, 210, 470
RATES = [0, 25, 50, 75, 100]


def band(panel: Panel, points: list[tuple[float, float, float]], colour: str) -> str:
    """From the least to the greatest over the rate."""
    over = [f"{panel.x(x):.1f},{panel.y(high):.1f}" for x, _, high in points]
    under = [f"{panel.x(x):.1f},{panel.y(low):.1f}" for x, low, _ in reversed(points)]
    return (f'<polygon points="{" ".join(over + under)}" fill="{colour}" fill-opacity="0.25" '
            f'stroke="{colour}" stroke-opacity="0.5"/>')


def curve(panel: Panel, points: list[tuple[float, float]], colour: str) -> str:
    at = " ".join(f"{panel.x(x):.1f},{panel.y(y):.1f}" for x, y in points)
    return f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="2"/>'


def ring(panel: Panel, x: float, y: float, colour: str) -> str:
    return (f'<circle cx="{panel.x(x):.1f}" cy="{panel.y(y):.1f}" r="3.5" fill="#fff" '
            f'stroke="{colour}" stroke-width="1.5"/>')


def share_lost(of: dict) -> float:
    return 100 * (1 - of["received"] / of["sent"])


def together(rows: list[dict]) -> list[dict]:
    """Of each rate one row: all runs of it."""
    merged = []
    for rate in dict.fromkeys(row["mbit_per_s"] for row in rows):
        of = [row for row in rows if row["mbit_per_s"] == rate]
        one: dict = {"mbit_per_s": rate}
        for name in ("real-time", "reference"):
            had = [row[name] for row in of]
            one[name] = {key: sum(it[key] for it in had) for key in ("sent", "received")}
            ends = [it for it in had if "min_ns" in it]
            if ends:
                one[name] |= {"min_ns": min(it["min_ns"] for it in ends),
                              "max_ns": max(it["max_ns"] for it in ends)}
            if ends and "mean_ns" in ends[0]:
                one[name]["mean_ns"] = sum(it["mean_ns"] for it in ends) / len(ends)
        merged.append(one)
    return merged


def latencies(panel: Panel, rows: list[dict], hardware: list[dict]) -> list[str]:
    parts = []
    for name, colour in (("real-time", BLUE), ("reference", ORANGE)):
        of = [(row["mbit_per_s"], row[name]) for row in rows if "min_ns" in row[name]]
        ends = [(x, had["min_ns"] / 1e3, had["max_ns"] / 1e3) for x, had in of]
        parts.append(band(panel, ends, colour))
        if name == "reference":
            parts.append(curve(panel, [(x, had["mean_ns"] / 1e3) for x, had in of], colour))
        for point in hardware:
            had, x = point[name], point["mbit_per_s"]
            low, mean, high = (had[f"{key}_fs"] / 1e9 for key in ("min", "mean", "max"))
            at = panel.x(x)
            parts.append(line(at, panel.y(low), at, panel.y(high), colour))
            parts.append(ring(panel, x, mean, colour))
    return parts


def losses(panel: Panel, rows: list[dict], hardware: list[dict]) -> list[str]:
    parts = []
    for name, colour in (("real-time", BLUE), ("reference", ORANGE)):
        points = [(row["mbit_per_s"], share_lost(row[name])) for row in rows]
        parts.append(curve(panel, points, colour))
        parts += [ring(panel, point["mbit_per_s"], share_lost(point[name]), colour)
                  for point in hardware]
    return parts


def picture(data: list[dict], hardware: list[dict]) -> str:
    """Rows: as many frames as the hardware has had, and its points; then many frames, with a
    dedicated path, and through TSN bridges."""
    long = [row for row in data if not row["like_hardware"]]
    like = [row for row in data if row["like_hardware"]]
    shown = [(DEDICATED, long, []), (TSN, long, [])]
    if like:
        shown.insert(0, (DEDICATED, like, hardware))
    merged = [together([row for row in rows if row["kind"] == kind])
              for kinds, rows, _ in shown for kind in kinds]
    most = max(share_lost(row["reference"]) for rows in merged for row in rows)
    most = 10 * math.ceil(most / 10)
    parts = [text(LEFT, 20, "Three hops: real time, from least to greatest", BLUE),
             text(LEFT + 300, 20, "best effort, with its mean and what was lost", ORANGE)]
    for at, (kinds, rows, points) in enumerate(shown):
        top = 80 + ROW * at
        frames = rows[0]["real-time"]["sent"]
        of = f"{frames:,} frames for each rate"
        if points:
            of = f"engine: {len(SEEDS)} times {of}; rings: Verilog, once"
        parts.append(text(LEFT, top - 32, of, GREY))
        for column, kind in enumerate(kinds):
            its = [point for point in points if point["policy"] == kind]
            one = together([row for row in rows if row["kind"] == kind])
            parts += column_of((LEFT + STEP * column, top), kind, (one, its), most)
    return svg(LEFT + 3 * STEP + 10, 30 + ROW * len(shown), parts)


def column_of(place: tuple[float, float], kind: str, data: tuple[list[dict], list[dict]],
              most: int) -> list[str]:
    left, top = place
    first = left == LEFT
    rows, hardware = data
    logarithm: Callable[[float], float] = math.log10
    latency = Panel((left, top, WIDTH, 220), (0, 110), (1, 1000), logarithm)
    loss = Panel((left, top + 265, WIDTH, 90), (0, 110), (0, most))
    parts = latency.grid(RATES, [1, 10, 100, 1000], "", "µs" if first else "")
    parts.append(text(left + 20, top - 10, f"policy {kind}" if kind in DEDICATED else kind))
    parts += latencies(latency, rows, hardware)
    parts += loss.grid(RATES, [0, most / 2, most], "Mbit/s of each of the two streams",
                       "% lost" if first else "")
    return parts + losses(loss, rows, hardware)


def draw(data: list[dict], hardware: list[dict], place: Path) -> None:
    (place / "policies.svg").write_text(picture(data, hardware), encoding="utf-8")
