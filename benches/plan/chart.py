"""How `onbeat plan` grows with scheduled channels, as a picture."""

from __future__ import annotations

import math

# Title, key, colour.
LINES = [("whole plan", "plan_s", "#1f6fb2"), ("one channel more", "one_s", "#c8641b")]
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 360, 60, 40, 40


def chart(rows: list[dict[str, float]]) -> str:
    """An SVG: processor seconds over channels, both logarithmic."""
    values = [row[key] for row in rows for _, key, _ in LINES]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = (math.log10(rows[at]["channels"]) for at in (0, -1))

    def x(channels: float) -> float:
        return LEFT + (math.log10(channels) - first) / (last - first) * (WIDTH - LEFT - 40)

    def y(seconds: float) -> float:
        return TOP + (high - math.log10(seconds)) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for power in range(low, high + 1):
        at = y(10**power)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>'
            f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="#666">{10.0**power:g} s</text>'
        )
    for row in rows:
        parts.append(
            f'<text x="{x(row["channels"]):.1f}" y="{HEIGHT - 20}" text-anchor="middle" fill="#666">'
            f"{row['channels']:,.0f}</text>"
        )
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 4}" text-anchor="middle">scheduled channels</text>')
    for number, (title, key, colour) in enumerate(LINES):
        points = [(x(row["channels"]), y(row[key])) for row in rows]
        path = " ".join(f"{at:.1f},{to:.1f}" for at, to in points)
        parts.append(f'<text x="{LEFT + 130 * number}" y="20" fill="{colour}">{title}</text>')
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{at:.1f}" cy="{to:.1f}" r="3" fill="{colour}"/>' for at, to in points]
    return "\n".join([*parts, "</svg>"]) + "\n"
