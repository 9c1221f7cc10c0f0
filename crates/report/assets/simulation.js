// Fills the tables, a page at a time: there may be many thousand rows. What it did is left in data
// attributes, for the tests: on each table how many rows it has, how many the filter leaves, and on
// the document how long the script took.
(() => {
  const began = performance.now();
  const PER_PAGE = 25;
  const { texts, verdicts, flows, ends, ports } = JSON.parse(document.getElementById("data").textContent);
  const SVG = document.getElementById("map").namespaceURI;

  // --- elements and numbers -----------------------------------------------------------------------

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const drawing = (name, attributes, ...children) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const none = "–";
  // Halves away from zero, as the table in a terminal has them.
  const us = (ns) => ns == null ? none : (Math.sign(ns) * Math.round(Math.abs(ns) / 10) / 100).toFixed(2);
  const grouped = (number) => number == null ? none : String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const percent = (mille) => mille === 0 ? "0 %" : `${(mille / 10).toFixed(1)} %`;
  const ratio = (value) => value == null ? none : (Math.floor(value * 100) / 100).toFixed(2);
  const rate = (bps) => bps % 1e9 === 0 ? `${bps / 1e9} Gb/s` : bps % 1e6 === 0 ? `${bps / 1e6} Mb/s` : `${bps / 1e3} kb/s`;
  const style = (verdict) => verdicts[verdict].replace(" ", "-");
  const badge = (verdict) => element("span", { class: `badge ${style(verdict)}` }, verdicts[verdict]);
  const cell = (content, attributes = {}) => element("td", attributes, content);
  const number = (text) => cell(text, { class: "number" });

  // --- a table with filters, sorting, pages and rows that open ----------------------------------------

  const makeTable = ({ id, filters, rows, keys, sort, down = false, matches, draw, open }) => {
    const table = document.getElementById(id);
    const form = document.getElementById(filters);
    const body = table.tBodies[0];
    const pager = table.closest("section").querySelector(".pager");
    const columns = table.tHead.rows[0].cells.length;
    const state = { sort, down, page: 0, shown: rows };

    const compare = (a, b) => {
      const key = keys[state.sort];
      const [left, right] = [key(a), key(b)];
      // What has no value comes last, whichever way it is sorted.
      if (left == null || right == null) return (left == null) - (right == null) || a.at - b.at;
      const order = typeof left === "number" ? left - right : left.localeCompare(right, "en", { numeric: true });
      return (state.down ? -order : order) || a.at - b.at;
    };
    const refresh = () => {
      const wanted = Object.fromEntries(new FormData(form));
      const words = (wanted.text || "").toLowerCase().split(/\s+/).filter(Boolean);
      state.shown = rows.filter((row) => words.every((word) => row.text.includes(word)) && matches(row, wanted));
      state.shown.sort(compare);
      state.page = 0;
      show(wanted);
    };
    const show = (wanted = Object.fromEntries(new FormData(form))) => {
      const pages = Math.max(1, Math.ceil(state.shown.length / PER_PAGE));
      const first = state.page * PER_PAGE;
      const part = state.shown.slice(first, first + PER_PAGE);
      body.replaceChildren(...part.map((row) => line(row, wanted)));
      if (!part.length) {
        body.append(element("tr", {}, cell("Nothing matches.", { colspan: columns, class: "empty" })));
      }
      for (const head of table.tHead.rows[0].cells) {
        const key = head.firstElementChild?.dataset.sort;
        if (key === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      }
      const all = state.shown.length === rows.length ? "" : ` that match, of ${grouped(rows.length)}`;
      pager.querySelector("span").textContent = part.length
        ? `${grouped(first + 1)} to ${grouped(first + part.length)} of ${grouped(state.shown.length)}${all}`
        : `none of ${grouped(rows.length)}`;
      for (const button of pager.querySelectorAll("button")) {
        const back = ["first", "previous"].includes(button.dataset.page);
        button.disabled = back ? state.page === 0 : state.page >= pages - 1;
      }
      table.dataset.rows = rows.length;
      table.dataset.shown = state.shown.length;
      table.dataset.page = state.page;
    };
    const line = (row, wanted) => {
      const made = draw(row, wanted, state.shown);
      const button = made.querySelector(".expand");
      const detail = `${id}-${row.at}`;
      button.setAttribute("aria-expanded", "false");
      button.setAttribute("aria-controls", detail);
      button.addEventListener("click", () => {
        const opened = button.getAttribute("aria-expanded") === "true";
        button.setAttribute("aria-expanded", String(!opened));
        if (opened) document.getElementById(detail).remove();
        else made.after(element("tr", { class: "detail", id: detail }, cell(open(row), { colspan: columns })));
      });
      return made;
    };
    table.tHead.addEventListener("click", (event) => {
      const key = event.target.closest("[data-sort]")?.dataset.sort;
      if (!key) return;
      state.down = key === state.sort && !state.down;
      state.sort = key;
      refresh();
    });
    pager.addEventListener("click", (event) => {
      const last = Math.max(0, Math.ceil(state.shown.length / PER_PAGE) - 1);
      const to = { first: 0, previous: state.page - 1, next: state.page + 1, last }[event.target.dataset.page];
      if (to == null) return;
      state.page = Math.min(Math.max(to, 0), last);
      show();
    });
    form.addEventListener("input", refresh);
    form.addEventListener("submit", (event) => event.preventDefault());
    refresh();
  };
  const fill = (form, name, values) => {
    const select = document.getElementById(form).elements[name];
    for (const value of new Set(values)) select.append(element("option", {}, String(value)));
  };
  const facts = (pairs) => element("dl", { class: "settings" }, ...pairs.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));

  // --- flows --------------------------------------------------------------------------------------

  const endRows = ends.map(([flow, host, frames, latency, bounds, verdict, terms], at) => {
    const [name, kind, trafficClass, queue, talker, counts, deadline, reason] = flows[flow];
    const [min, mean, max, released] = latency ?? [];
    const [bound, best] = bounds ?? [];
    const parts = [];
    for (let place = 0; place < terms.length; place += 2) parts.push({ what: texts[terms[place]], ns: terms[place + 1] });
    const largest = parts.reduce((most, term) => !most || term.ns > most.ns ? term : most, null);
    const row = {
      at, name, kind, class: trafficClass, queue, talker: texts[talker], counts, deadline, reason, host: texts[host],
      frames, min, mean, max, released, bound, best, verdict, terms: parts, largest,
      ratio: bound == null || !max ? null : bound / max,
    };
    row.text = [name, row.talker, row.host, largest?.what ?? ""].join(" ").toLowerCase();
    return row;
  });

  const rangeChart = (row, most) => {
    const x = (ns) => (4 + 202 * Math.max(0, Math.min(1, ns / most))).toFixed(1);
    const rule = (name, ns, top) => drawing("line", { class: name, x1: x(ns), x2: x(ns), y1: top, y2: 22 - top });
    const marks = [drawing("line", { class: "axis", x1: 4, x2: 206, y1: 11, y2: 11 })];
    if (row.max != null) {
      const width = Math.max(2, x(row.max) - x(row.min));
      marks.push(drawing("rect", { class: "span", x: x(row.min), y: 6, width, height: 10, rx: 2 }), rule("mean", row.mean, 6));
    }
    if (row.best != null) marks.push(rule("best", row.best, 2));
    if (row.bound != null) marks.push(rule("bound", row.bound, 1));
    return drawing("svg", { class: "range", viewBox: "0 0 210 22", "aria-hidden": "true" }, ...marks);
  };
  let widest = { of: null, ns: 1 };
  const widestOf = (shown) => {
    if (widest.of !== shown) widest = { of: shown, ns: shown.reduce((most, row) => Math.max(most, row.bound ?? 0, row.max ?? 0), 1) };
    return widest.ns;
  };

  const drawEnd = (row, wanted, shown) => {
    const own = Math.max(row.bound ?? row.max ?? 1, row.max ?? 0) * 1.03;
    const most = wanted.scale === "time" || row.bound == null ? widestOf(shown) : own;
    return element("tr", { class: style(row.verdict) },
      element("th", { scope: "row" }, element("button", { type: "button", class: "expand" }, row.name), element("small", {}, `from ${row.talker}`)),
      cell(row.host), number(String(row.queue)),
      number(us(row.min)), number(us(row.mean)), number(us(row.max)), number(us(row.bound)), number(ratio(row.ratio)),
      cell(rangeChart(row, most)),
      cell(row.largest?.what ?? none, { class: "term", title: row.largest ? `${row.largest.what}: ${us(row.largest.ns)} µs` : "" }),
      cell(badge(row.verdict)));
  };
  const termTable = (row) => {
    const most = row.largest.ns || 1;
    const lines = row.terms.map((term) => {
      const bar = element("i");
      bar.style.width = `${Math.max(0, 100 * term.ns / most)}%`;
      return element("tr", {}, element("th", { scope: "row" }, term.what), number(us(term.ns)),
        cell(element("div", { class: "bar", "aria-hidden": "true" }, bar)));
    });
    const total = element("tr", { class: "total" }, element("th", { scope: "row" }, `release to receipt at ${row.host}, at most`), number(us(row.bound)), cell(""));
    return element("table", { class: "terms" }, element("tbody", {}, ...lines, total));
  };
  const openEnd = (row) => {
    const [released, policed, overflowed, faulted, duplicates, rogue] = row.counts;
    const [received, reordered] = row.frames;
    const pairs = [
      ["Kind", row.class ? `${row.kind}, ${row.class}` : row.kind],
      ["Released", grouped(released)], ["Received here", grouped(received)], ["Policed", grouped(policed)],
      ["Lost to full queues", grouped(overflowed)], ["Lost to faults", grouped(faulted)],
      ["Duplicates eliminated", grouped(duplicates)],
      ["Eliminated outside the history", grouped(rogue)], ["Out of order", grouped(reordered)],
      ["Best case, µs", us(row.best)],
      ["Jitter, µs", row.max == null ? none : `${us(row.max - row.min)} of ${row.bound == null ? none : us(row.bound - row.best)}`],
      ["Slowest released at, µs", us(row.released)],
    ];
    if (row.deadline != null) pairs.push(["Deadline, µs", us(row.deadline)]);
    const terms = element("div", {}, element("h4", {}, "The bound's terms, in µs"), row.terms.length ? termTable(row) : "It has no bound.");
    const rest = element("div", {}, element("p", { class: "reason" }, `${verdicts[row.verdict]}: ${row.reason}`), facts(pairs));
    return element("div", { class: "detail-grid" }, terms, rest);
  };
  fill("flow-filters", "verdict", verdicts.filter((_, at) => endRows.some((row) => row.verdict === at)));
  fill("flow-filters", "queue", endRows.map((row) => row.queue).sort().reverse());
  makeTable({
    id: "flow-table", filters: "flow-filters", rows: endRows, sort: "verdict", draw: drawEnd, open: openEnd,
    keys: {
      name: (row) => row.name, host: (row) => row.host, queue: (row) => row.queue, min: (row) => row.min,
      mean: (row) => row.mean, max: (row) => row.max, bound: (row) => row.bound, ratio: (row) => row.ratio,
      term: (row) => row.largest?.what,
      // Of equal verdicts, those nearest to their bound first.
      verdict: (row) => row.verdict * 1e9 + Math.min(row.ratio ?? 1e6, 1e6),
    },
    matches: (row, wanted) => (!wanted.verdict || verdicts[row.verdict] === wanted.verdict)
      && (!wanted.queue || String(row.queue) === wanted.queue) && (!wanted.kind || row.kind === wanted.kind),
  });

  // --- ports --------------------------------------------------------------------------------------

  const portRows = ports.map(([name, to, bps, busy, described], at) => {
    const queues = described.map(([queue, load, [sent, dropped], [frames, octets], bounds, wait, preempted, verdict]) => ({
      queue, load, sent, dropped, frames, octets, limits: bounds, wait, preempted, verdict,
      used: bounds ? Math.max(octets / (bounds[1] || 1), frames / (bounds[0] || 1)) : null,
    }));
    const bounded = queues.filter((queue) => queue.limits);
    const nearest = bounded.reduce((most, queue) => !most || queue.used > most.used ? queue : most, null);
    const deepest = nearest ?? queues.reduce((most, queue) => !most || queue.octets > most.octets ? queue : most, null);
    const row = {
      at, name, to: texts[to], rate: bps, busy, queues, deepest,
      dropped: queues.reduce((sum, queue) => sum + queue.dropped, 0),
      verdict: queues.reduce((worst, queue) => Math.min(worst, queue.verdict), verdicts.length - 1),
    };
    row.text = `${name} ${row.to}`.toLowerCase();
    return row;
  });
  const loadChart = (row) => {
    // What is more than the whole link, as after the last release, is scaled down to it.
    const most = Math.max(1000, row.queues.reduce((sum, queue) => sum + queue.load, 0));
    let x = 0;
    const parts = [...row.queues].reverse().map((queue) => {
      const width = 200 * queue.load / most;
      const part = drawing("rect", { class: `q${queue.queue}`, x: x.toFixed(1), y: 0, width: width.toFixed(1), height: 16 },
        drawing("title", {}, `queue ${queue.queue}: ${percent(queue.load)}`));
      x += width;
      return part;
    });
    return drawing("svg", { class: "stack", viewBox: "0 0 200 16", "aria-hidden": "true" },
      drawing("rect", { class: "axis", x: 0, y: 0, width: 200, height: 16 }), ...parts);
  };
  const backlogChart = (queue) => {
    const limit = queue.limits?.[1];
    const most = Math.max(queue.octets, limit ?? 0, 1) * 1.04;
    const x = (octets) => 130 * octets / most;
    const bar = drawing("rect", { class: limit != null && queue.octets > limit ? "over" : `q${queue.queue}`, x: 0, y: 3, width: x(queue.octets).toFixed(1), height: 10 });
    const marks = [drawing("rect", { class: "axis", x: 0, y: 3, width: 130, height: 10 }), bar];
    if (limit != null) marks.push(drawing("line", { class: "bound", x1: x(limit).toFixed(1), x2: x(limit).toFixed(1), y1: 0, y2: 16 }));
    return drawing("svg", { class: "backlog", viewBox: "0 0 130 16", "aria-hidden": "true" }, ...marks);
  };
  const drawPort = (row) => element("tr", { class: style(row.verdict) },
    element("th", { scope: "row" }, element("button", { type: "button", class: "expand" }, row.name)),
    cell(row.to), number(rate(row.rate)), number(percent(row.busy)), cell(loadChart(row)), number(grouped(row.dropped)),
    number(grouped(row.deepest?.octets)), number(grouped(row.deepest?.limits?.[1])),
    cell(row.deepest ? backlogChart(row.deepest) : none), cell(badge(row.verdict)));
  const openPort = (row) => {
    const headings = ["Queue", "load", "frames", "dropped", "waited: frames", "bound", "octets", "bound", "", "longest wait, µs", "preempted", "Verdict"];
    const head = element("thead", {}, element("tr", {}, ...headings.map((text) => element("th", { scope: "col" }, text))));
    const lines = [...row.queues].reverse().map((queue) => element("tr", { class: style(queue.verdict) },
      element("th", { scope: "row" }, String(queue.queue)), cell(percent(queue.load)), cell(grouped(queue.sent)), cell(grouped(queue.dropped)),
      cell(grouped(queue.frames)), cell(grouped(queue.limits?.[0])), cell(grouped(queue.octets)), cell(grouped(queue.limits?.[1])),
      cell(backlogChart(queue)), cell(us(queue.wait)), cell(grouped(queue.preempted)), cell(badge(queue.verdict))));
    return lines.length ? element("table", {}, head, element("tbody", {}, ...lines)) : "Nothing was sent here.";
  };
  fill("port-filters", "verdict", verdicts.filter((_, at) => portRows.some((row) => row.verdict === at)));
  makeTable({
    id: "port-table", filters: "port-filters", rows: portRows, sort: "busy", down: true, draw: drawPort, open: openPort,
    keys: {
      name: (row) => row.name, to: (row) => row.to, rate: (row) => row.rate, busy: (row) => row.busy, dropped: (row) => row.dropped,
      deepest: (row) => row.deepest?.octets, limit: (row) => row.deepest?.limits?.[1],
      verdict: (row) => row.verdict * 1e9 - (row.deepest?.used ?? 0),
    },
    matches: (row, wanted) => !wanted.verdict || verdicts[row.verdict] === wanted.verdict,
  });

  // --- the network: zoom and move -------------------------------------------------------------------

  const map = document.getElementById("map");
  const whole = map.viewBox.baseVal;
  const [width, height] = [whole.width, whole.height];
  let view = { x: 0, y: 0, scale: 1 };
  const place = () => {
    view.scale = Math.min(1, Math.max(0.02, view.scale));
    const [wide, high] = [width * view.scale, height * view.scale];
    view.x = Math.min(Math.max(view.x, 0), width - wide);
    view.y = Math.min(Math.max(view.y, 0), height - high);
    map.setAttribute("viewBox", [view.x, view.y, wide, high].map((value) => value.toFixed(1)).join(" "));
  };
  const zoom = (factor, [x, y] = [0.5, 0.5]) => {
    const before = view.scale;
    view.scale = Math.min(1, Math.max(0.02, before * factor));
    view.x += width * (before - view.scale) * x;
    view.y += height * (before - view.scale) * y;
    place();
  };
  const move = (x, y) => { view.x += x * width * view.scale; view.y += y * height * view.scale; place(); };
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => zoom({ in: 0.6, out: 1 / 0.6, all: 1e3 }[button.dataset.zoom]));
  }
  map.addEventListener("keydown", (event) => {
    const act = {
      "+": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": () => zoom(1e3),
      ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0), ArrowUp: () => move(0, -0.1), ArrowDown: () => move(0, 0.1),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  map.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = map.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]);
  }, { passive: false });
  map.addEventListener("pointerdown", (event) => {
    if (view.scale === 1) return;
    map.setPointerCapture(event.pointerId);
    map.classList.add("dragged");
  });
  map.addEventListener("pointermove", (event) => {
    const box = map.getBoundingClientRect();
    if (map.classList.contains("dragged")) move(-event.movementX / box.width, -event.movementY / box.height);
  });
  for (const end of ["pointerup", "pointercancel"]) map.addEventListener(end, () => map.classList.remove("dragged"));

  document.documentElement.dataset.scriptMs = Math.round(performance.now() - began);
})();
