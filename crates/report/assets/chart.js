// What the charts of all pages have in common: the style sheet's colours, axes, levels, and when
// they are drawn again.
const charting = (() => {
  // Colours: the style sheet's, as the canvas needs them.
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const font = () => `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis = (extra) => ({
    stroke: colour("quiet"), font: font(), labelFont: font(), labelSize: 18,
    grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("line"), width: 1 },
    ...extra,
  });
  const short = (value) => value == null ? null : String(+value.toPrecision(4));

  // A hook that draws a dashed line across the chart, at a value of its axis `y`, and a text at its
  // left or right end, above the line if there is room and it is not to be `under` it.
  const level = (value, name, text, side = "left", under = false) => (plot) => {
    if (value == null) return;
    const { ctx, bbox } = plot;
    const { min, max } = plot.scales.y;
    if (value < min || value > max) return;
    const y = Math.round(plot.valToPos(value, "y", true));
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour(name);
    ctx.lineWidth = 1.6 * devicePixelRatio;
    ctx.setLineDash([8 * devicePixelRatio, 5 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.font = font().replace("12px", `${12 * devicePixelRatio}px`);
    ctx.textAlign = side;
    const room = 20 * devicePixelRatio;
    const below = y - bbox.top < room || under && bbox.top + bbox.height - y > room;
    ctx.textBaseline = below ? "top" : "bottom";
    const inset = 6 * devicePixelRatio;
    const x = side === "left" ? bbox.left + inset : bbox.left + bbox.width - inset;
    const gap = (below ? 4 : -4) * devicePixelRatio;
    ctx.lineWidth = 4 * devicePixelRatio;
    ctx.setLineDash([]);
    ctx.strokeStyle = colour("panel");
    ctx.strokeText(text, x, y + gap);
    ctx.fillText(text, x, y + gap);
    ctx.restore();
  };

  // Draws now, again in other colours, and in another width when the window has one. `charts` is
  // a function that gives all of them, as { plot, element }.
  const keep = (drawAll, charts) => {
    const again = () => {
      drawAll();
      document.documentElement.dataset.charts = [...charts()].length;
    };
    document.addEventListener("theme", again);
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      for (const { plot, element } of charts()) {
        plot.setSize({ width: element.clientWidth, height: plot.height });
      }
    });
    again();
  };
  return { colour, font, axis, short, level, keep };
})();
