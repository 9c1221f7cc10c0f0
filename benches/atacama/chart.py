"""The experiments' data as pictures (SVG) and tables (Markdown)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import waveform

BLUE, ORANGE, GREEN, GREY = "#1f6fb2", "#c8641b", "#3c8d40", "#666"
COLOURS = (BLUE, ORANGE, GREEN, "#8a4fb0")
CYCLE_US = 8e-3


def svg(width: int, height: int, parts: list[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="{width}" height="{height}" '
        'fill="#fff"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, colour: str = "#222", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'
    )


class Panel:
    """A grid with two axes; `scale` maps a value of the vertical one."""

    def __init__(self, place: tuple[float, float, float, float], x: tuple[float, float],
                 y: tuple[float, float], scale: Callable[[float], float] = float) -> None:
        self.left, self.top, self.width, self.height = place
        self.limits = x, (scale(y[0]), scale(y[1]))
        self.scale = scale

    def x(self, value: float) -> float:
        low, high = self.limits[0]
        return self.left + self.width * (value - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self.limits[1]
        return self.top + self.height * (1 - (self.scale(value) - low) / (high - low))

    def grid(self, xs: list[float], ys: list[float], x_name: str, y_name: str) -> list[str]:
        parts = [text(self.left - 30, self.top - 10, y_name, GREY)]
        right, bottom = self.left + self.width, self.top + self.height
        for value in ys:
            parts.append(line(self.left, self.y(value), right, self.y(value), "#ddd"))
            parts.append(text(self.left - 6, self.y(value) + 4, f"{value:g}", GREY, "end"))
        for value in xs:
            parts.append(line(self.x(value), bottom, self.x(value), bottom + 4, GREY))
            parts.append(text(self.x(value), bottom + 17, f"{value:g}", GREY, "middle"))
        parts.append(text(right, bottom + 33, x_name, GREY, "end"))
        return parts


def latency(data: dict) -> str:
    """Points of RTL over the published line, and the native one."""
    panel = Panel((60, 40, 640, 380), (0, 380), (0, 20))
    parts = panel.grid([0, 100, 200, 300, 372], [0, 5, 10, 15, 20], "words", "µs")
    published = data["published"]
    for switches in range(4):
        colour = COLOURS[switches]
        ends = [
            (panel.x(words), panel.y(CYCLE_US * (published[0] + published[1] * switches
                                                 + published[2] * words)))
            for words in (1, 372)
        ]
        parts.append(line(*ends[0], *ends[1], colour))
        parts.append(text(ends[1][0] + 14, ends[1][1] + 4, f"Ns = {switches}", colour))
    for point in data["points"]:
        fill = "#fff" if point["variant"] == "native" else COLOURS[point["switches"]]
        for cycles in point["cycles"]:
            x, y = panel.x(point["words"]), panel.y(CYCLE_US * int(cycles))
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{fill}" '
                         f'stroke="{COLOURS[point["switches"]]}"/>')
    parts.append(text(60, 18, "Create to last word stored: published line, RTL calibrated (full) "
                              "and native (hollow), with and without best effort"))
    return svg(780, 470, parts)


def spread(data: list[dict]) -> str:
    """Both histograms of all oscillators, each about its own least latency, back to back."""
    sums: dict[str, Counter] = {"quiet": Counter(), "loaded": Counter()}
    for pair in data:
        least = min(int(ns) for ns in pair["quiet"]["histogram_ns"])
        for kind, of in sums.items():
            for ns, count in pair[kind]["histogram_ns"].items():
                of[int(ns) - least] += count
    most = max(max(of.values()) for of in sums.values())
    width = max(max(of) for of in sums.values()) + 2
    panel = Panel((70, 50, 640, 300), (-1, max(width, 33)), (-most, most))
    parts = panel.grid([0, 8, 16, 24, 32], [-most, 0, most], "ns above the least latency", "frames")
    for sign, (kind, colour) in ((1, ("quiet", BLUE)), (-1, ("loaded", ORANGE))):
        for ns, count in sorted(sums[kind].items()):
            y = sorted((panel.y(0), panel.y(sign * count)))
            parts.append(
                f'<rect x="{panel.x(ns - 0.4):.1f}" y="{y[0]:.1f}" fill="{colour}" '
                f'width="{panel.x(0.8) - panel.x(0):.1f}" height="{y[1] - y[0]:.1f}"/>'
            )
    aborts = sum(pair["loaded"]["aborts"] for pair in data)
    parts.append(text(70, 20, "three switches, an oscillator each: without best effort", BLUE))
    parts.append(text(420, 20, f"with it, and {aborts:,} frames cut", ORANGE))
    return svg(760, 400, parts)


def robustness(data: list[dict]) -> str:
    """Latency of both streams over their rate, with the parts that were lost."""
    parts = []
    policies = list(dict.fromkeys(point["policy"] for point in data))
    for column, policy in enumerate(policies):
        points = [point for point in data if point["policy"] == policy]
        panel = Panel((60 + 300 * column, 50, 240, 260), (0, 110), (1, 1000), math.log10)
        parts += panel.grid([0, 25, 50, 75, 100], [1, 10, 100, 1000],
                            "Mbit/s of each of the two streams", "µs" if not column else "")
        parts.append(text(panel.left + 60, 24, f"policy {policy}"))
        for name, colour in (("real-time", BLUE), ("reference", ORANGE)):
            told = []
            for point in points:
                of = point[name]
                if not of["received"]:
                    continue
                x = panel.x(point["mbit_per_s"])
                low, mean, high = (
                    panel.y(of[key] / 1e9) for key in ("min_fs", "mean_fs", "max_fs")
                )
                parts.append(line(x, low, x, high, colour, 'stroke-width="2"'))
                parts.append(f'<circle cx="{x:.1f}" cy="{mean:.1f}" r="3" fill="{colour}"/>')
                lost = 100 * (1 - of["received"] / of["sent"])
                if lost:
                    # Above those beside it that it would be written over.
                    near = [y for at, y in told if x - at < 36 and abs(y - high) < 36]
                    told.append((x, min([high - 6] + [y - 13 for y in near])))
                    parts.append(text(x, told[-1][1], f"{lost:.1f}&#8239;%", colour, "middle"))
    frames = min(point["real-time"]["sent"] for point in data)
    parts.append(text(60, 375, f"Latency through three switches, least, mean, greatest of {frames:,} "
                               "frames each: real time", BLUE))
    parts.append(text(530, 375, "and best effort, with the share that was lost", ORANGE))
    return svg(60 + 300 * len(policies), 390, parts)


def waveform_picture(data: dict) -> str:
    """Enable, error and the parts of the octets of both wires, with what happens when."""
    step, left = 1.75, 60
    rows = {"in": 70, "out": 190}
    parts = []
    bursts = {name: waveform.bursts(pins) for name, pins in data["wires"].items()}
    frame = bursts["in"][0]
    cut, real_time, again = bursts["out"][:3]
    names = {"in": [("real time", BLUE)],
             "out": [("best effort", ORANGE), ("real time", BLUE), ("best effort, again", ORANGE)]}
    limit = 480
    for name, top in rows.items():
        title = "GMII in, port 0" if name == "in" else "GMII out, port 2"
        parts.append(text(left, top - 22, title, GREY))
        for burst, (label, colour) in zip(bursts[name], names[name], strict=True):
            parts += burst_parts(burst, label, colour, (left, step, top, limit))
        parts += edges(data["wires"][name], (left, step, top + 34, limit), "en", 2)
        parts += edges(data["wires"][name], (left, step, top + 56, limit), "er", 3)
    known = frame["begin"] + 7 + 1 + 18
    marks = [
        (frame["begin"] + 7, "start of frame"),
        (known, "EtherType has come"),
        (cut["end"] - 1, "TX_ER: cut"),
        (real_time["begin"], f"gap of {real_time['begin'] - cut['end']} is over"),
        (real_time["begin"] + 7, "start of frame"),
        (again["begin"], f"gap of {again['begin'] - real_time['end']}; sent again"),
    ]
    for number, (cycle, label) in enumerate(marks):
        x, y = left + step * cycle, 290 + 17 * number
        parts.append(line(x, 40, x, y, GREY, 'stroke-dasharray="2 3"'))
        parts.append(text(x + 4, y, f"{cycle - frame['begin'] - 7:+d} cycles: {label}"))
    return svg(left + int(step * limit) + 20, 400, parts)


def burst_parts(burst: dict, label: str, colour: str,
                place: tuple[float, float, float, int]) -> list[str]:
    """One frame: its preamble light, the rest full."""
    left, step, top, limit = place
    end = min(burst["end"], limit)
    begin = burst["begin"]
    x = left + step * begin
    parts = [
        f'<rect x="{x:.1f}" y="{top - 14}" width="{step * (end - begin):.1f}" height="26" '
        f'fill="{colour}" fill-opacity="0.75"/>',
        f'<rect x="{x:.1f}" y="{top - 14}" width="{step * 8:.1f}" height="26" fill="#fff" '
        'fill-opacity="0.6"/>',
    ]
    if burst["cut"]:
        parts.append(f'<rect x="{left + step * (end - 1):.1f}" y="{top - 14}" width="{step + 1}" '
                     'height="26" fill="#c00"/>')
    return [*parts, text(x + step * 10, top + 4, label, "#fff")]


def edges(pins: list[list[int]], place: tuple[float, float, float, int], name: str,
          index: int) -> list[str]:
    """A signal of one bit as a line."""
    left, step, top, limit = place
    points = []
    for row in pins[:limit]:
        y = top + (0 if row[index] else 12)
        points.append(f"{left + step * row[0]:.1f},{y} {left + step * (row[0] + 1):.1f},{y}")
    return [text(left - 8, top + 10, name, GREY, "end"),
            f'<polyline points="{" ".join(points)}" fill="none" stroke="#222"/>']


def table(head: list[str], rows: list[list[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines) + "\n"


def table_1(data: list[dict]) -> str:
    return table(
        ["words", "published model", "published observed", "RTL, least", "RTL, greatest", "frames",
         "lost or altered", "best-effort frames cut"],
        [[row["words"], f"{row['published_model_us']:.3f}", f"{row['published_observed_us']:.3f}",
          f"{row['min_us']:.3f}", f"{row['max_us']:.3f}", row["frames"],
          row["lost"] + row["altered"], row["aborts"]] for row in data],
    )


def attacks(data: list[dict]) -> str:
    def share(of: dict) -> str:
        return f"{of['received']}/{of['sent']}"

    rows = []
    for row in data:
        counted = ", ".join(f"{key} {value}" for key, value in row["counters"].items()
                            if value and key not in ("rt_in", "rt_out", "be_in", "be_out"))
        rows.append([row["attack"], row["sent"], share(row["arrived"]),
                     share(row["real_time"]["during"]), share(row["best_effort"]["during"]),
                     f"{share(row['rt_probe'])}, {share(row['be_probe'])}", counted or "-"])
    return table(["attack", "frames", "of them forwarded", "real time of others",
                  "best effort of others", "good frames of the port afterwards", "counted there"],
                 rows)


def draw(name: str, data: object, place: Path) -> None:
    """Writes what shows this experiment."""
    pictures = {"latency": latency, "spread": spread, "robustness": robustness,
                "waveform": waveform_picture}
    tables = {"table": table_1, "attacks": attacks}
    if name in pictures:
        (place / f"{name}.svg").write_text(pictures[name](data), encoding="utf-8")
    if name in tables:
        (place / f"{name}.md").write_text(tables[name](data), encoding="utf-8")
    if name == "waveform":
        (place / "waveform.vcd").write_text(waveform.vcd(data), encoding="utf-8")
