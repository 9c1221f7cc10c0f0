"""The engine's speed and memory over the size of what it simulates, as a picture."""

from __future__ import annotations

import math

Figures = dict[str, float]
# Title, key, divisor, colour.
Line = tuple[str, str, float, str]

WIDTH, PANEL, HEIGHT, LEFT, TOP, GAP = 860, 230, 150, 60, 40, 70
# What a row of panels shows.
ROWS: list[list[Line]] = [
    [
        ("million events/s", "events_per_s", 1e6, "#1f6fb2"),
        ("million frame-hops/s", "hops_per_s", 1e6, "#c8641b"),
    ],
    [("peak memory of the process, MiB", "peak_kib", 1024, "#1f6fb2")],
]


def nice(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def chart(sweeps: dict[str, list[Figures]]) -> str:
    """An SVG: a column for each thing that grows, in the upper row the rates, in the lower one the
    memory. Hosts and streams are logarithmic, everything else is not and begins at 0."""
    height = TOP + len(ROWS) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for number, lines in enumerate(ROWS):
        all_rows = [row for rows in sweeps.values() for row in rows]
        values = [row[key] / by for _, key, by, _ in lines for row in all_rows]
        top = nice(max(values) / 4) * 4
        y0 = TOP + number * (HEIGHT + GAP)
        legend = LEFT
        for title, _, _, colour in lines:
            parts.append(f'<text x="{legend}" y="{y0 - 12}" fill="{colour}">{title}</text>')
            legend += 8 * len(title)
        for column, (name, rows) in enumerate(sweeps.items()):
            x0 = LEFT + column * (PANEL + 40)
            parts += panel(name, rows, lines, top, x0, y0)
    return "\n".join([*parts, "</svg>"]) + "\n"


def panel(
    name: str, rows: list[Figures], lines: list[Line], top: float, x0: float, y0: float
) -> list[str]:
    """One grid with its lines; the sizes are the marks of the lower axis."""
    scale = float if name == "load" else math.log10
    first, last = scale(rows[0][name]), scale(rows[-1][name])
    parts = []
    for step in range(5):
        y = y0 + HEIGHT * (1 - step / 4)
        parts.append(f'<line x1="{x0}" x2="{x0 + PANEL}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        if x0 == LEFT:
            parts.append(
                f'<text x="{x0 - 8}" y="{y + 4}" text-anchor="end" fill="#666">'
                f"{top * step / 4:g}</text>"
            )
    places = [x0 + PANEL * (scale(row[name]) - first) / (last - first) for row in rows]
    for x, row in zip(places, rows, strict=True):
        parts.append(
            f'<text x="{x:.1f}" y="{y0 + HEIGHT + 16}" text-anchor="middle" fill="#666">'
            f"{row[name]:,}</text>"
        )
    unit = "load of the links to the core, %" if name == "load" else name
    middle = x0 + PANEL / 2
    parts.append(f'<text x="{middle}" y="{y0 + HEIGHT + 31}" text-anchor="middle">{unit}</text>')
    for _, key, by, colour in lines:
        heights = [y0 + HEIGHT * (1 - row[key] / by / top) for row in rows]
        points = list(zip(places, heights, strict=True))
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    return parts
