// Draws the charts. What it did is left in data attributes, for the tests: on each chart how much
// it drew, on the document how many charts there are.
(() => {
  const { colour, axis, level, keep } = charting;
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = new Map();

  const fixed = (value, digits) => value == null ? "–" : value.toFixed(digits);
  const timeAxis = (label) => axis({ label, size: 34, labelGap: 0 });
  const short = (_, splits) => splits.map(charting.short);
  // 1, 2 and 5 times the powers of ten between the ends of a logarithmic axis.
  const decades = (_, __, min, max) => {
    const splits = [];
    for (let power = Math.floor(Math.log10(min)); 10 ** power <= max; power++) {
      for (const step of [1, 2, 5]) splits.push(+(step * 10 ** power).toPrecision(1));
    }
    const inside = splits.filter((value) => value >= min && value <= max);
    // Over many decades the powers alone.
    return inside.length > 9 ? inside.filter((value) => Number.isInteger(Math.log10(value))) : inside;
  };
  const valueAxis = (logarithmic, extra) => axis({
    values: short, ...(logarithmic ? { splits: decades, filter: (_, splits) => splits } : {}), ...extra,
  });

  // The range of a horizontal axis: all of it, from `low` to `high` at least, until one zooms in.
  const whole = (values, low, high) => (_, min, max) =>
    min <= values[0] && max >= values[values.length - 1] ? [Math.min(low, min), Math.max(high, max)] : [min, max];

  // --- latency over time, with the interfering load, lost messages and the bound ---------------

  const MICROSECOND = 1e3, SECOND = 1e6;

  // Lost messages are drawn on the time axis by a hook: they have no latency.
  const drawLost = (figure) => (plot) => {
    const { ctx, bbox } = plot;
    const arm = 4 * devicePixelRatio;
    const y = bbox.top + bbox.height - arm - devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = colour("lost");
    ctx.lineWidth = 1.4 * devicePixelRatio;
    ctx.beginPath();
    let before = -Infinity;
    for (const at of figure.lost_at_us) {
      const x = Math.round(plot.valToPos(at / SECOND, "x", true));
      // One cross per pixel looks the same as a hundred.
      if (x === before || x < bbox.left || x > bbox.left + bbox.width) continue;
      before = x;
      ctx.moveTo(x - arm, y - arm); ctx.lineTo(x + arm, y + arm);
      ctx.moveTo(x - arm, y + arm); ctx.lineTo(x + arm, y - arm);
    }
    ctx.stroke();
    ctx.restore();
  };

  const promise = (ns, name, label, side, under) => {
    const value = ns == null ? null : ns / MICROSECOND;
    return level(value, name, `${label} ${fixed(value, 1)} µs`, side, under);
  };

  // The nearest row at or before the cursor that has a value: the rows of points and of the load
  // are not the same.
  const nearest = (plot, series, index) => {
    const values = plot.data[series];
    for (let back = index; back >= 0; back--) if (values[back] != null) return back;
    return index;
  };

  const latencyRange = (figure, logarithmic) => {
    let low = Infinity, high = -Infinity;
    for (const value of figure.latency_ns) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) [low, high] = [0, figure.bound_ns ?? figure.fixed_delay_ns];
    if (figure.bound_ns != null) high = Math.max(high, figure.bound_ns);
    low /= MICROSECOND; high /= MICROSECOND;
    // The crosses of lost messages need room below the lowest point.
    if (logarithmic && high > 0) return [Math.max(low, 0.01) * 0.6, high * 1.4];
    return [Math.min(0, low), Math.max(0, high) * 1.08];
  };

  const latencyChart = (element, figure, state) => {
    const load = data.loads[figure.load];
    const loaded = load.at_us.length > 0;
    const seconds = (times) => times.map((at) => at / SECOND);
    // Messages of one microsecond share a row; drawn apart by less than a pixel anyway.
    const at = [], latency = [];
    figure.at_us.forEach((time, index) => {
      const x = time / SECOND;
      at.push(at.length && x <= at[at.length - 1] ? at[at.length - 1] + 1e-7 : x);
      latency.push(figure.latency_ns[index] / MICROSECOND);
    });
    const mega = (rates) => rates.map((rate) => rate / 1e3);
    const tables = [[at, latency]];
    if (loaded) tables.push([seconds(load.at_us), mega(load.delivered_kbps), mega(load.offered_kbps)]);
    const rows = uPlot.join(tables);
    const logarithmic = state.logarithmic;
    const step = { scale: "load", spanGaps: true, points: { show: false },
      paths: uPlot.paths.stepped({ align: 1 }), value: (_, value) => `${fixed(value, 0)} Mb/s` };
    const series = [
      { label: "time", value: (_, value) => `${fixed(value, 3)} s` },
      { label: "latency", scale: "y", stroke: colour("latency"), paths: () => null,
        points: { show: true, size: 4, width: 0, fill: colour("latency") },
        value: (_, value) => `${fixed(value, 2)} µs` },
    ];
    const axes = [
      timeAxis("capture time, s"),
      valueAxis(logarithmic, { scale: "y", label: "latency, µs", size: 60 }),
    ];
    if (loaded) {
      series.push({ label: "load delivered", stroke: colour("load"), width: 1.6, ...step },
        { label: "load offered (dotted)", stroke: colour("load"), width: 1, dash: [3, 3], ...step });
      axes.push(axis({ scale: "load", side: 1, label: "interfering load, Mb/s", stroke: colour("load"),
        grid: { show: false }, size: 60 }));
    }
    const options = {
      width: element.clientWidth, height: 380, series, axes,
      scales: {
        x: { time: false, range: whole(rows[0], 0, figure.end_us / SECOND) },
        y: { range: latencyRange(figure, logarithmic), ...(logarithmic && figure.latency_ns.some((ns) => ns > 0) ? { distr: 3 } : {}) },
        load: { range: (_, min, max) => [0, max > 0 ? max * 1.1 : 1] },
      },
      cursor: { dataIdx: nearest, focus: { prox: -1 } },
      legend: { markers: {
        width: (_, index) => index === 1 ? 0 : 2,
        fill: (_, index) => index === 1 ? colour("latency") : "transparent",
      } },
      hooks: {
        drawSeries: [(plot, index) => { if (index === 1) drawLost(figure)(plot); }],
        // At different ends and sides: the lines may be close to each other.
        draw: [
          promise(figure.fixed_delay_ns, "quiet", "fixed delay", "right", figure.fixed_delay_ns < figure.bound_ns),
          promise(figure.bound_ns, "bound", "bound", "left", figure.bound_ns < figure.fixed_delay_ns),
        ],
      },
    };
    element.dataset.points = figure.at_us.length;
    element.dataset.lost = figure.lost_count.reduce((sum, count) => sum + count, 0);
    const plot = new uPlot(options, rows, element);
    addLegend(plot, figure);
    return plot;
  };

  // The library's legend knows nothing of the crosses and lines that the hooks draw.
  const addLegend = (plot, figure) => {
    const entry = (text, name) => {
      const row = document.createElement("tr");
      row.className = "u-series";
      const cell = document.createElement("td");
      cell.textContent = text;
      cell.style.color = colour(name);
      cell.style.fontWeight = "600";
      row.append(cell);
      plot.root.querySelector(".u-legend")?.append(row);
    };
    if (figure.lost_at_us.length) entry("✕ lost", "lost");
    if (figure.bound_ns != null) entry("╌ bound", "bound");
  };

  // --- wake-up errors ---------------------------------------------------------------------------

  const densityChart = (element, figure, state) => {
    const histogram = state.near ? figure.near : figure.all;
    const total = figure.all.counts.reduce((sum, count) => sum + count, 0);
    const width = histogram.width_ns / MICROSECOND;
    const start = histogram.start_ns / MICROSECOND;
    const x = histogram.counts.map((_, index) => start + (index + 0.5) * width);
    const share = histogram.counts.map((count) => count ? 100 * count / total : null);
    const end = start + histogram.counts.length * width;
    const least = 100 / total;
    const options = {
      width: element.clientWidth, height: 220,
      series: [
        { label: "error", value: (_, value) => value == null ? "–" : `${fixed(value - width / 2, 3)} to ${fixed(value + width / 2, 3)} µs` },
        { label: "share", stroke: colour("accent"), fill: colour("accent"), width: 0, points: { show: false },
          paths: uPlot.paths.bars({ size: [1, 100] }),
          value: (_, value) => value == null ? "–" : `${value < 0.1 ? value.toPrecision(2) : fixed(value, 2)} %` },
      ],
      axes: [timeAxis("error, µs"), valueAxis(state.logarithmic, { label: "share, %", size: 56 })],
      scales: {
        x: { time: false, range: whole(x, start - width / 2, end + width / 2) },
        y: state.logarithmic
          ? { distr: 3, range: (_, min, max) => [least * 0.5, Math.max(max, least) * 1.5] }
          : { range: (_, min, max) => [0, max * 1.08] },
      },
      cursor: { y: false },
    };
    element.dataset.points = histogram.counts.reduce((sum, count) => sum + count, 0);
    const plot = new uPlot(options, [x, share], element);
    return plot;
  };

  // --- all of them --------------------------------------------------------------------------------

  const draw = (id) => {
    const chart = charts.get(id);
    chart.plot?.destroy();
    chart.plot = chart.make(chart.element, chart.figure, chart.state);
  };
  const drawAll = () => {
    for (const id of charts.keys()) draw(id);
  };
  const add = (id, figure, make, state) => {
    charts.set(id, { element: document.getElementById(id), figure, make, state });
  };
  for (const [id, figure] of Object.entries(data.latency)) {
    const values = figure.latency_ns;
    // A full queue is two orders of magnitude above an idle network.
    const spread = values.reduce((most, value) => Math.max(most, value), 1) /
      values.reduce((least, value) => Math.min(least, value), Infinity);
    add(id, figure, latencyChart, { logarithmic: spread > 10 });
  }
  for (const [id, figure] of Object.entries(data.density)) {
    add(id, figure, densityChart, { near: true, logarithmic: false });
  }
  for (const button of document.querySelectorAll("[data-switch]")) {
    const ids = button.dataset.for.split(" ");
    const key = button.dataset.switch === "scale" ? "logarithmic" : "near";
    const show = () => button.setAttribute("aria-pressed", charts.get(ids[0]).state[key]);
    button.addEventListener("click", () => {
      const value = !charts.get(ids[0]).state[key];
      for (const id of ids) { charts.get(id).state[key] = value; draw(id); }
      show();
    });
    show();
  }

  keep(drawAll, () => charts.values());
})();
