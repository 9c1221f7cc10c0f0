// Draws the charts of a measurement. What it did is left in data attributes, for the tests: on each
// chart how much it drew, on the document how many charts there are.
(() => {
  const { colour, axis, short, level, keep } = charting;
  const data = JSON.parse(document.getElementById("data").textContent);
  const plots = new Map();

  const time = (ns) => {
    if (ns == null) return "–";
    const size = Math.abs(ns);
    if (size < 1e3) return `${short(ns)} ns`;
    return size < 1e6 ? `${short(ns / 1e3)} µs` : `${short(ns / 1e6)} ms`;
  };
  // The powers of ten alone.
  const powers = (_, __, min, max) => {
    const splits = [];
    for (let power = Math.ceil(Math.log10(min)); 10 ** power <= max; power++) splits.push(10 ** power);
    return splits;
  };

  // Bins grow with their values, so they stand side by side, each as wide as the others; where
  // there were no values, one place is left free.
  const histogram = (element, bins) => {
    const places = [];
    for (const [from, to, count] of bins) {
      const last = places.at(-1);
      if (last && last.to < from) places.push({ from: last.to, to: from, count: null });
      places.push({ from, to, count });
    }
    const x = places.map((_, index) => index);
    const counts = places.map((place) => place.count);
    const most = Math.max(1, ...counts.map((count) => count ?? 0));
    const at = (value) => places[Math.round(value)];
    element.dataset.count = counts.reduce((sum, count) => sum + (count ?? 0), 0);
    return new uPlot({
      width: element.clientWidth, height: 220,
      series: [
        { label: "time", value: (_, value) => value == null ? "–" : `${time(at(value).from)} to ${time(at(value).to)}` },
        { label: "samples", stroke: colour("accent"), fill: colour("accent"), width: 0, points: { show: false },
          paths: uPlot.paths.bars({ size: [0.9, 60] }), value: (_, value) => value == null ? "–" : String(value) },
      ],
      axes: [
        axis({ size: 34, space: 70, values: (_, splits) => splits.map((split) => Number.isInteger(split) && at(split) ? time(at(split).from) : "") }),
        axis({ label: "samples", size: 70, splits: powers, filter: (_, splits) => splits, values: (_, splits) => splits.map(String) }),
      ],
      scales: {
        x: { time: false, range: (_, min, max) => [Math.min(min, max - 1) - 0.6, max + 0.6] },
        y: { distr: 3, range: () => [0.5, most * 1.5] },
      },
      cursor: { y: false },
    }, [x, counts], element);
  };

  const course = (element, { at, values_ns, published_max_ns, published }) => {
    const least = values_ns.reduce((low, value) => Math.min(low, value), Infinity);
    const most = values_ns.reduce((high, value) => Math.max(high, value), -Infinity);
    const logarithmic = least > 0 && most > 10 * least;
    const y = logarithmic
      ? { distr: 3, range: () => [least * 0.6, most * 1.6] }
      : { range: () => [Math.min(0, least * 1.08), Math.max(1, most * 1.08)] };
    element.dataset.points = at.length;
    return new uPlot({
      width: element.clientWidth, height: 220,
      series: [
        { label: "sample", value: (_, value) => value == null ? "–" : String(value) },
        { label: "value", stroke: colour("latency"), paths: () => null,
          points: { show: true, size: 3, width: 0, fill: colour("latency") }, value: (_, value) => time(value) },
      ],
      axes: [
        axis({ size: 34, space: 90, label: "sample", labelGap: 0 }),
        axis({ size: 70, values: (_, splits) => splits.map(time),
          ...(logarithmic ? { splits: powers, filter: (_, splits) => splits } : {}) }),
      ],
      scales: { x: { time: false }, y },
      hooks: { draw: [level(published_max_ns, "bound", `published maximum (${published})`)] },
    }, [at, values_ns], element);
  };

  const draw = (id, make, what) => {
    plots.get(id)?.plot.destroy();
    const element = document.getElementById(id);
    plots.set(id, { element, plot: make(element, what) });
  };
  const drawAll = () => {
    for (const [id, bins] of Object.entries(data.histograms)) draw(id, histogram, bins);
    for (const [id, line] of Object.entries(data.courses)) draw(id, course, line);
  };
  keep(drawAll, () => plots.values());
})();
