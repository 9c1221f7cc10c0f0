"""The report's figures with matplotlib: functions from data to a Figure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Hues after Okabe and Ito, as in the report.
_COLOURS = ("#007a5a", "#c94f00", "#0060b0", "#8b2f6b", "#8a6d00", "#3b3b9e")
_BOUND = "#8b2f6b"
_LOST = "#0060b0"
_COLUMNS = (
    ("run", "run"),
    ("channel", "channel"),
    ("received", "received"),
    ("lost", "lost"),
    ("latency_min_ns", "min"),
    ("latency_avg_ns", "avg"),
    ("latency_p50_ns", "p50"),
    ("latency_p99_ns", "p99"),
    ("latency_max_ns", "max"),
    ("latency_stddev_ns", "stddev"),
    ("bound_ns", "bound"),
    ("verdict", "verdict"),
)


def histogram(
    data: pd.Series[int] | Mapping[str, pd.Series[int]],
    *,
    title: str = "",
    bins: int = 60,
    near: float = 0.995,
    logarithmic: bool = False,
) -> Figure:
    """Draw how often values occur, of one series or of several by name.

    Args:
        data: times in nanoseconds; missing ones are left out.
        title: above the figure.
        bins: how many bins all series share.
        near: the bins reach up to the value that this share of each series does not exceed; how
            many are beyond is said in the legend.
        logarithmic: whether shares are drawn on a logarithmic axis.
    """
    several = data if isinstance(data, Mapping) else {str(data.name or "values"): data}
    present = {name: _micros(values) for name, values in several.items()}
    present = {name: values for name, values in present.items() if len(values)}
    figure, axes = _figure(title, "µs", "share, %")
    if not present:
        return figure
    low = min(values.min() for values in present.values())
    high = max(np.quantile(values, near) for values in present.values())
    edges = np.linspace(low, max(high, low + 1e-3), bins + 1)
    for number, (name, values) in enumerate(present.items()):
        counts, _ = np.histogram(values, edges)
        beyond = int((values > edges[-1]).sum())
        label = f"{name} ({beyond} beyond)" if beyond else name
        colour = _COLOURS[number % len(_COLOURS)]
        axes.stairs(100 * counts / len(values), edges, color=colour, fill=True, alpha=0.25)
        axes.stairs(100 * counts / len(values), edges, color=colour, label=label)
    if logarithmic:
        axes.set_yscale("log")
    axes.legend()
    return figure


def time_series(messages: pd.DataFrame, *, bound_ns: int | None = None, title: str = "") -> Figure:
    """Draw latencies over capture time, with a bound and with lost messages.

    Args:
        messages: rows of :attr:`onbeat.Run.messages`; runs and channels get colours of their own.
        bound_ns: the plan's worst case, as a dashed line.
        title: above the figure.
    """
    figure, axes = _figure(title, "capture time, s", "latency, µs")
    groups = messages.groupby(["run", "channel", "listener"], sort=False, observed=True)
    largest, smallest = 0.0, np.inf
    for number, (key, rows) in enumerate(groups):
        received = rows.dropna(subset=["latency_ns", "capture_ns"])
        latencies = _micros(received["latency_ns"])
        if len(latencies):
            largest, smallest = max(largest, latencies.max()), min(smallest, latencies.min())
        colour = _COLOURS[number % len(_COLOURS)]
        run, channel, listener = key
        label = f"{run}: {channel} to {listener}"
        axes.plot(_seconds(received["capture_ns"]), latencies, ".", ms=3, color=colour, label=label)
    lost = messages[(messages["lost"] == 1).fillna(False).astype(bool)]
    if len(lost):
        times = _seconds(lost["capture_ns"])
        # On the axis: a lost message has no latency.
        axes.plot(
            times,
            np.zeros(len(times)),
            "x",
            color=_LOST,
            label=f"{len(lost)} lost",
            transform=axes.get_xaxis_transform(),
            clip_on=False,
        )
    if bound_ns is not None:
        axes.axhline(bound_ns / 1e3, color=_BOUND, ls="--", label=f"bound {bound_ns / 1e3:.1f} µs")
    # A full queue is two orders of magnitude above an idle network.
    if smallest > 0 and largest > 10 * smallest:
        axes.set_yscale("log")
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
    return figure


def scenario_table(channels: pd.DataFrame, *, title: str = "") -> Figure:
    """Draw the figures of each run and channel as a table, times in microseconds.

    Args:
        channels: rows of :attr:`onbeat.Run.channels`.
        title: above the table.
    """
    columns = [(name, head) for name, head in _COLUMNS if name in channels.columns]
    rows = [
        [_shown(name, value) for (name, _), value in zip(columns, row, strict=True)]
        for row in channels[[name for name, _ in columns]].itertuples(index=False)
    ]
    figure = Figure(figsize=(11, 0.6 + 0.35 * (len(rows) + 1)), layout="constrained")
    axes = figure.add_subplot()
    axes.axis("off")
    axes.set_title(title)
    if rows:
        table = axes.table(rows, colLabels=[head for _, head in columns], loc="center")
        table.auto_set_font_size(False)
        table.set_fontsize(8)
        table.auto_set_column_width(list(range(len(columns))))
    return figure


def _figure(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    return figure, axes


def _micros(values: pd.Series[int]) -> np.ndarray:
    return values.dropna().to_numpy(dtype="int64") / 1e3


def _seconds(values: pd.Series[int]) -> np.ndarray:
    return values.to_numpy(dtype="int64") / 1e9


def _shown(name: str, value: object) -> str:
    if value is None or value is pd.NA:
        return "-"
    if name.endswith("_ns"):
        return f"{int(str(value)) / 1e3:.2f}"
    return str(value)
