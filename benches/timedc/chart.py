"""How long aborts took, as text and as a picture."""

from __future__ import annotations

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 860, 240, 50, 46, 40
BINS = 40
BLOCKS = 50


def bins(latencies_ns: list[int]) -> list[tuple[float, int]]:
    """The upper edge in us and the count of bins from 0 to the 99th percentile; the last one
    also has what is above."""
    ordered = sorted(latencies_ns)
    top = max(ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)], BINS)
    width = -(-top // BINS)
    counts = [0] * BINS
    for value in ordered:
        counts[min(value // width, BINS - 1)] += 1
    return [((at + 1) * width / 1000, count) for at, count in enumerate(counts)]


def text(latencies_ns: list[int]) -> str:
    """A line for each bin that has any."""
    counted = bins(latencies_ns)
    most, last = max(count for _, count in counted), counted[-2][0]
    lines = [
        f"{'≥' if at == BINS - 1 else '<'} {edge if at < BINS - 1 else last:8.2f} us {count:8d} "
        f"{'█' * -(-count * BLOCKS // most)}"
        for at, (edge, count) in enumerate(counted)
        if count
    ]
    return "\n".join(lines)


def svg(latencies_ns: list[int], about: str) -> str:
    """The same as a picture; heights are linear."""
    counted = bins(latencies_ns)
    most = max(count for _, count in counted)
    room = HEIGHT - TOP - BOTTOM
    each = (WIDTH - LEFT - 20) / BINS
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="16">{about}</text>',
        f'<text x="{LEFT - 8}" y="{TOP + 4}" text-anchor="end" fill="#666">{most}</text>',
        f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}" '
        'stroke="#999"/>',
    ]
    for at, (edge, count) in enumerate(counted):
        height = room * count / most
        x = LEFT + each * at
        if count:
            parts.append(
                f'<rect x="{x:.1f}" y="{HEIGHT - BOTTOM - max(height, 1):.1f}" '
                f'width="{each - 1:.1f}" height="{max(height, 1):.1f}" fill="#1f6fb2">'
                f"<title>to {edge:.2f} us: {count}</title></rect>"
            )
        if at % 8 == 7:
            parts.append(
                f'<text x="{x + each:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" '
                f'fill="#666">{edge:.1f}</text>'
            )
    rest = f'<text x="{LEFT}" y="{HEIGHT - 6}" fill="#666">us; the last bar has the rest</text>'
    return "\n".join([*parts, rest, "</svg>"]) + "\n"
