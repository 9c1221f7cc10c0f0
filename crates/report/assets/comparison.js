// Draws each series' histogram and distribution function, both runs in one chart. What it drew is
// left in data attributes, for the tests.
(() => {
  const { colour, axis, keep } = charting;
  const data = JSON.parse(document.getElementById("data").textContent);
  const MICROSECOND = 1e3;

  const short = (_, splits) => splits.map(charting.short);
  const shown = (value, unit) => value == null ? "–" : `${+value.toPrecision(5)} ${unit}`;

  // The first is dashed: told apart without colours as well.
  const lines = (unit) => ["colour1", "load"].map((name, run) => ({
    label: run === 0 ? "first" : "second", stroke: colour(name), width: 2,
    ...(run === 0 ? { dash: [6, 4] } : {}), spanGaps: true, points: { show: false },
    paths: uPlot.paths.stepped({ align: 1 }), value: (_, value) => shown(value, unit),
  }));
  const plot = (element, rows, label, unit, y) => new uPlot({
    width: element.clientWidth, height: 260,
    series: [{ label: "µs", value: (_, value) => shown(value, "µs") }, ...lines(unit)],
    axes: [axis({ label: "µs", size: 34, labelGap: 0, values: short }), axis({ label, size: 60, values: short })],
    scales: { x: { time: false }, y },
    cursor: { y: false },
  }, rows, element);

  const histogram = (element, figure) => {
    const { start_ns, width_ns, runs } = figure;
    const x = runs[0].bins.map((_, bin) => (start_ns + bin * width_ns) / MICROSECOND);
    x.push((start_ns + x.length * width_ns) / MICROSECOND);
    const shares = runs.map((run) => [...run.bins, 0].map((count) => 100 * count / run.count));
    const inside = (run) => run.bins.reduce((sum, count) => sum + count, 0);
    element.dataset.values = runs.map((run) => inside(run) + run.beyond);
    return plot(element, [x, ...shares], "share, %", "%", { range: (_, min, max) => [0, (max || 1) * 1.08] });
  };

  const distribution = (element, figure, tail) => {
    const table = (run) => {
      const x = run.values_ns.map((value) => value / MICROSECOND);
      // In the tail: how many are as large or larger, so that the last one is not nothing.
      const share = (upTo, at) => tail
        ? 100 * (run.count - (at === 0 ? 0 : run.up_to[at - 1])) / run.count : 100 * upTo / run.count;
      return [x, run.up_to.map(share)];
    };
    const least = 100 / Math.max(...figure.runs.map((run) => run.count));
    element.dataset.points = figure.runs.map((run) => run.values_ns.length);
    element.dataset.tail = tail;
    const y = tail ? { distr: 3, range: () => [least * 0.7, 130] } : { range: () => [0, 103] };
    return plot(element, uPlot.join(figure.runs.map(table)), tail ? "so large or larger, %" : "up to, %", "%", y);
  };

  const charts = [];
  for (const figure of data.figures) {
    const add = (end, make) => {
      const chart = { element: document.getElementById(figure.id + end), make, plot: null };
      charts.push(chart);
      return chart;
    };
    add("h", (element) => histogram(element, figure));
    let tail = false;
    const chart = add("d", (element) => distribution(element, figure, tail));
    const button = document.querySelector(`[data-tail="${figure.id}"]`);
    button.addEventListener("click", () => {
      tail = !tail;
      button.setAttribute("aria-pressed", tail);
      draw(chart);
    });
  }
  const draw = (chart) => {
    chart.plot?.destroy();
    chart.plot = chart.make(chart.element);
  };
  keep(() => charts.forEach(draw), () => charts);
})();
