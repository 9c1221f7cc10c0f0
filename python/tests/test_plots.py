"""What is drawn is what is in the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import onbeat


@pytest.fixture(scope="module")
def run(run_directory: Path) -> onbeat.Run:
    """The runs of the first example."""
    loaded = onbeat.load(run_directory)
    assert isinstance(loaded, onbeat.Run)
    return loaded


def test_a_histogram_has_every_value_in_a_bin_or_says_how_many_are_beyond(run: onbeat.Run) -> None:
    by_run = {name: run.of(name)["latency_ns"] for name in run.runs["run"]}
    figure = onbeat.histogram(by_run, title="latency")
    axes = figure.axes[0]
    outlines = axes.patches[1::2]
    assert len(outlines) == len(by_run)
    for outline, values in zip(outlines, by_run.values(), strict=True):
        values = values.dropna()
        last = outline.get_data().edges[-1]
        beyond = (values.to_numpy(dtype="int64") / 1e3 > last).sum()
        inside = outline.get_data().values.sum() / 100 * len(values)
        assert round(inside + beyond) == len(values)
        assert (f"{beyond} beyond" in outline.get_label()) == (beyond > 0)


def test_latencies_losses_and_the_bound_are_drawn(run: onbeat.Run) -> None:
    messages = run.of("protected", "mcast42").copy()
    messages.loc[messages.index[3], ["latency_ns", "lost"]] = [pd.NA, 1]
    figure = onbeat.time_series(messages, bound_ns=run.bound_ns("mcast42"))
    points, lost, bound = figure.axes[0].lines
    latencies = messages["latency_ns"].dropna().to_numpy(dtype="int64")
    assert np.array_equal(points.get_ydata(), latencies / 1e3)
    assert len(lost.get_xdata()) == 1
    assert lost.get_xdata()[0] == messages["capture_ns"].iloc[3] / 1e9
    assert bound.get_ydata()[0] == run.bound_ns("mcast42") / 1e3


def test_the_table_has_a_row_for_each_scenario(run: onbeat.Run) -> None:
    figure = onbeat.scenario_table(run.channels)
    cells = figure.axes[0].tables[0].get_celld()
    rows = 1 + max(row for row, _ in cells)
    texts = {cell.get_text().get_text() for cell in cells.values()}
    assert rows == 1 + len(run.channels)
    assert {"unprotected", "protected", "kept", "no promise"} <= texts
    assert f"{run.channels['latency_max_ns'].iloc[0] / 1e3:.2f}" in texts


def test_nothing_gives_an_empty_figure(run: onbeat.Run) -> None:
    nothing = run.messages.iloc[:0]
    for figure in (
        onbeat.histogram(nothing["latency_ns"]),
        onbeat.time_series(nothing),
        onbeat.scenario_table(run.channels.iloc[:0]),
    ):
        figure.canvas.draw()


def test_figures_can_be_saved(run: onbeat.Run, tmp_path: Path) -> None:
    onbeat.time_series(run.messages).savefig(tmp_path / "latency.png")
    assert (tmp_path / "latency.png").read_bytes().startswith(b"\x89PNG")
