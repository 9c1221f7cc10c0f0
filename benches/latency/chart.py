"""The latency benchmark's figures as a picture."""

from __future__ import annotations

import math
from html import escape

Figures = dict[str, float]

WIDTH, LEFT, RIGHT, ROW, TOP = 860, 170, 20, 26, 46
STEPS = (1, 2, 5)


def chart(paced: dict[str, Figures], what: dict[str, str]) -> str:
    """An SVG: for each contestant a bar from the median to the 99th percentile, and a thin line
    from the least. The scale is logarithmic."""
    low_us = min((f["min_ns"] for f in paced.values()), default=1_000) / 1000
    high_us = max((f["p99_ns"] for f in paced.values()), default=100_000) / 1000
    first, last = math.log10(max(low_us, 0.5) * 0.8), math.log10(high_us * 1.2)

    def x(us: float) -> float:
        part = (math.log10(max(us, 0.5)) - first) / (last - first)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    height = TOP + ROW * len(paced) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="16">one-way latency in us, logarithmic: '
        "line from the least, bar from p50 to p99</text>",
    ]
    for us in (step * 10**power for power in range(0, 6) for step in STEPS):
        if first <= math.log10(us) <= last:
            parts.append(
                f'<line x1="{x(us):.1f}" x2="{x(us):.1f}" y1="{TOP - 8}" y2="{height - 6}" '
                f'stroke="#ddd"/><text x="{x(us):.1f}" y="{TOP - 12}" '
                f'text-anchor="middle" fill="#666">{us}</text>'
            )
    for number, (name, f) in enumerate(paced.items()):
        y = TOP + ROW * number
        least, p50, p99 = (x(f[key] / 1000) for key in ("min_ns", "p50_ns", "p99_ns"))
        colour = "#1f6fb2" if name.startswith("onbeat") else "#999"
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(name)}'
            f"<title>{escape(what.get(name, ''))}</title></text>"
            f'<line x1="{least:.1f}" x2="{p50:.1f}" y1="{y + 10}" y2="{y + 10}" '
            f'stroke="{colour}"/>'
            f'<rect x="{p50:.1f}" y="{y + 3}" width="{max(p99 - p50, 2):.1f}" height="14" '
            f'fill="{colour}"/>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
