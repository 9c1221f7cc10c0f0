// Draws the lanes of the ports that the filter leaves, for the time in view.
(() => {
  const canvas = document.getElementById("chart");
  if (!canvas) return;
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const [filter, range, rest, tip] = ["filter", "range", "rest", "tip"].map(byId);
  const [LABEL, LANE, HEAD, LANES_MAX, SHORTEST] = [150, 30, 26, 120, 50];
  const end = data.begin + data.cycle;
  let [from, to] = [data.begin, data.begin + data.first];
  let lanes = [];
  let chosen = -1;
  let blocks = [];

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const probe = document.createElement("span");
  document.body.append(probe);
  // A canvas does not know light-dark().
  const resolved = (name) => { probe.style.color = colour(name); return getComputedStyle(probe).color; };
  const us = (ns) => `${(ns / 1000).toLocaleString("en", { maximumFractionDigits: 3 })} µs`;

  // Made only when it is looked at: there may be very many.
  const noted = (at, words) => () => words(at);

  const select = () => {
    const wanted = filter.value.trim().toLowerCase();
    const fits = (text) => text.toLowerCase().includes(wanted);
    const all = data.ports.map((port, at) => at).filter((at) => fits(data.ports[at].label)
      || data.ports[at].windows.some(([channel]) => fits(data.channels[channel].name)));
    lanes = all.slice(0, LANES_MAX);
    rest.hidden = all.length === lanes.length;
    rest.textContent = `${all.length - lanes.length} more ports: name one, or a channel, to see them.`;
    draw();
  };

  // The steps of the axis: 1, 2 or 5 of a power of ten.
  const step = (span) => {
    const power = 10 ** Math.floor(Math.log10(span / 6));
    return [1, 2, 5, 10].map((n) => n * power).find((n) => span / n <= 8);
  };

  const draw = () => {
    const scale = devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = HEAD + LANE * Math.max(lanes.length, 1);
    canvas.style.height = `${height}px`;
    [canvas.width, canvas.height] = [width * scale, height * scale];
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const colours = [0, 1, 2, 3, 4, 5].map((at) => resolved(`colour${at}`));
    const [text, quiet, grid, accent, panel] = ["text", "quiet", "grid", "accent", "panel"].map(resolved);
    const x = (ns) => LABEL + (ns - from) / (to - from) * (width - LABEL);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    blocks = [];
    const every = step(to - from);
    for (let tick = Math.ceil(from / every) * every; tick <= to; tick += every) {
      pen.fillStyle = grid;
      pen.fillRect(x(tick), HEAD, 1, height - HEAD);
      pen.fillStyle = quiet;
      pen.textAlign = tick === from ? "left" : "center";
      pen.fillText(us(tick), Math.min(x(tick), width - 30), HEAD / 2);
    }
    lanes.forEach((at, lane) => {
      const port = data.ports[at];
      const top = HEAD + lane * LANE;
      pen.fillStyle = grid;
      pen.fillRect(0, top, width, 1);
      pen.save();
      pen.beginPath();
      pen.rect(LABEL, top, width - LABEL, LANE);
      pen.clip();
      const { base, cycle, entries } = port.gates;
      let now = base + Math.floor((from - base) / cycle) * cycle;
      // What is narrower than two pixels cannot be told apart.
      const isNarrow = (ns) => ns / (to - from) * (width - LABEL) < 2;
      if (isNarrow(cycle)) {
        pen.globalAlpha = 0.4;
        pen.fillStyle = text;
        pen.fillRect(LABEL, top + LANE - 7, width - LABEL, 4);
        blocks.push([LABEL, width, top + LANE - 8, top + LANE, -1, () => `${port.label}\na cycle of ${us(cycle)}: zoom in`]);
        now = to;
      }
      while (now < to) {
        for (const [open, span] of entries) {
          if (now + span > from && now < to && open < 255) {
            const queues = [...Array(8).keys()].filter((queue) => open >> queue & 1);
            pen.globalAlpha = 0.95 - queues.length * 0.1;
            pen.fillStyle = text;
            pen.fillRect(x(now), top + LANE - 7, Math.max(x(now + span) - x(now), 0.5), 4);
            blocks.push([x(now), x(now + span), top + LANE - 8, top + LANE, -1,
              noted(now, (at) => `${port.label}\nopen: ${queues.join(" ") || "none"}\n${us(at)} for ${us(span)}`)]);
          }
          now += span;
        }
      }
      pen.globalAlpha = 1;
      for (const [channel, start, span] of port.windows) {
        const { name, interval } = data.channels[channel];
        if (isNarrow(interval)) {
          pen.globalAlpha = chosen === -1 || chosen === channel ? 0.5 : 0.1;
          pen.fillStyle = colours[channel % colours.length];
          pen.fillRect(LABEL, top + 4, width - LABEL, LANE - 13);
          blocks.push([LABEL, width, top + 4, top + LANE - 9, channel, () => `${name} at ${port.label}\nevery ${us(interval)}: zoom in`]);
          continue;
        }
        for (let now = start + Math.floor((from - start - span) / interval) * interval; now < to; now += interval) {
          if (now + span <= from) continue;
          const [left, right] = [x(now), Math.max(x(now + span), x(now) + 1)];
          pen.globalAlpha = chosen === -1 || chosen === channel ? 1 : 0.2;
          pen.fillStyle = colours[channel % colours.length];
          pen.fillRect(left, top + 4, right - left, LANE - 13);
          if (right - left > pen.measureText(name).width + 8) {
            pen.fillStyle = panel;
            pen.textAlign = "center";
            pen.fillText(name, (Math.max(left, LABEL) + Math.min(right, width)) / 2, top + LANE / 2 - 2);
          }
          if (chosen === channel) {
            pen.strokeStyle = accent;
            pen.strokeRect(left, top + 4, right - left, LANE - 13);
          }
          blocks.push([left, right, top + 4, top + LANE - 9, channel,
            noted(now, (at) => `${name} at ${port.label}\n${us(at)} for ${us(span)}\nevery ${us(interval)}`)]);
        }
      }
      pen.restore();
      pen.fillStyle = text;
      pen.textAlign = "left";
      pen.fillText(port.label, 8, top + LANE / 2, LABEL - 14);
    });
    [canvas.dataset.lanes, canvas.dataset.blocks] = [lanes.length, blocks.length];
    range.textContent = `${us(Math.round(from))} to ${us(Math.round(to))}, of a cycle of ${us(data.cycle)}`;
  };

  const view = (begin, span) => {
    const length = Math.min(Math.max(span, SHORTEST), data.cycle);
    from = Math.min(Math.max(begin, data.begin), end - length);
    to = from + length;
    draw();
  };
  const zoom = (factor, at = (from + to) / 2) => view(at - (at - from) * factor, (to - from) * factor);
  const timeAt = (event) => {
    const box = canvas.getBoundingClientRect();
    return from + (event.clientX - box.left - LABEL) / (box.width - LABEL) * (to - from);
  };
  const blockAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return blocks.findLast(([left, right, top, bottom]) => x >= left - 1 && x <= right + 1 && y >= top && y <= bottom);
  };

  byId("in").addEventListener("click", () => zoom(0.5));
  byId("out").addEventListener("click", () => zoom(2));
  byId("whole").addEventListener("click", () => { chosen = -1; view(data.begin, data.cycle); });
  filter.addEventListener("input", select);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event));
  }, { passive: false });
  let dragged = null;
  canvas.addEventListener("pointerdown", (event) => { dragged = { x: event.clientX, from, moved: false }; });
  addEventListener("pointerup", (event) => {
    if (dragged && !dragged.moved && event.target === canvas) {
      const block = blockAt(event);
      chosen = block && block[4] !== chosen ? block[4] : -1;
      draw();
    }
    dragged = null;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (dragged) {
      const moved = (dragged.x - event.clientX) / (canvas.clientWidth - LABEL) * (to - from);
      dragged.moved ||= Math.abs(dragged.x - event.clientX) > 3;
      if (dragged.moved) view(dragged.from + moved, to - from);
      return;
    }
    const block = blockAt(event);
    tip.hidden = !block;
    if (block) {
      tip.textContent = block[5]();
      const box = canvas.getBoundingClientRect();
      tip.style.left = `${Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth - 4)}px`;
      tip.style.top = `${Math.min(event.clientY - box.top + 14, box.height - tip.offsetHeight - 4)}px`;
    }
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("keydown", (event) => {
    const span = to - from;
    const keys = {
      "+": () => zoom(0.5), "-": () => zoom(2),
      ArrowLeft: () => view(from - span / 8, span), ArrowRight: () => view(from + span / 8, span),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  new ResizeObserver(draw).observe(canvas);
  document.addEventListener("theme", draw);
  select();
})();
