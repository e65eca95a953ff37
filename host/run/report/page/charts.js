// Charts as SVG, drawn of numbers.

const colours = ["#3b82c4", "#d9722e", "#3a9d6b", "#9a6cc8", "#cf5577", "#9a8a2f", "#3aa0aa",
                 "#808b96"];

function legend(entries) {
  return element("div", {class: "legend"}, ...entries.map(([label, colour]) =>
    element("span", null, element("i", {style: "background:" + colour}), label)));
}
const clipped = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
function frame(width, height, title, text) {
  return drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": text || title},
               drawn("text", {x: 12, y: 18}, clipped(title, Math.floor(width / 6.6))));
}

// Lines with the spread of several seeds as a band: {label, colour, points: [{x, mean, low, high}]}.
// Without `places` x is a number; with them, the labels of x = 0, 1, ...
function lineChart(title, series, below, places) {
  const width = 480, height = 260, left = 58, right = 18, top = 30, bottom = 34;
  const xs = series.flatMap(s => s.points.map(p => p.x));
  const ys = series.flatMap(s => s.points.flatMap(p => [p.low, p.high]));
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const x = v => left + (width - left - right) * (x1 > x0 ? (v - x0) / (x1 - x0) : .5);
  const y = v => height - bottom - (height - top - bottom) * (y1 > y0 ? (v - y0) / (y1 - y0) : .5);
  const ends = series.map(s => `${s.label} ends at ${shown(s.points.at(-1).mean)}`);
  const svg = frame(width, height, title, `${title}: ${ends.join(", ")}`);
  for (const part of y1 > y0 ? [0, .5, 1] : [0]) {
    const value = y0 + part * (y1 - y0);
    svg.append(drawn("line", {class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value)}),
               drawn("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, shown(value)));
  }
  const marks = places ? places.map((label, i) => [i, label])
    : (x1 > x0 ? [x0, x1] : [x0]).map(value => [value, shown(value)]);
  for (const [value, label] of marks) {
    svg.append(drawn("text", {x: x(value), y: height - (places ? 18 : 12), "text-anchor": "middle"},
                     label));
  }
  svg.append(drawn("text", {x: (left + width - right) / 2, y: height - (places ? 4 : 12),
                            "text-anchor": "middle"}, below));
  for (const s of series) {
    if (s.points.some(p => p.high > p.low)) {
      const edge = [...s.points.map(p => `${x(p.x)},${y(p.high)}`),
                    ...[...s.points].reverse().map(p => `${x(p.x)},${y(p.low)}`)];
      svg.append(drawn("polygon", {points: edge.join(" "), fill: s.colour, opacity: .2}));
    }
    svg.append(drawn("polyline", {points: s.points.map(p => `${x(p.x)},${y(p.mean)}`).join(" "),
                                  fill: "none", stroke: s.colour, "stroke-width": 2,
                                  ...(s.dashed ? {"stroke-dasharray": "6 4"} : {})},
                     drawn("title", null, `${s.label}: ${shown(s.points.at(-1).mean)} at the end`)));
    if (!places && s.points.length > 1) continue;
    for (const p of s.points) {
      svg.append(drawn("circle", {cx: x(p.x), cy: y(p.mean), r: 3.5, fill: s.colour},
                       drawn("title", null, `${s.label}: ${shown(p.mean)}`)));
    }
  }
  return svg;
}

// Horizontal bars: {label, value, error, colour, text}.
function barChart(title, bars) {
  const row = 24, left = 170, width = 480, top = 30, height = top + row * bars.length + 10;
  const most = Math.max(1e-12, ...bars.map(b => b.value + (b.error || 0)));
  const x = v => left + (width - left - 84) * Math.max(0, v) / most;
  const texts = bars.map(b => `${b.label} ${b.text || shown(b.value)}`);
  const svg = frame(width, height, title, `${title}: ${texts.join(", ")}`);
  bars.forEach((bar, i) => {
    const y = top + row * i;
    svg.append(drawn("text", {x: left - 8, y: y + 14, "text-anchor": "end"}, clipped(bar.label, 23)),
               drawn("rect", {x: left, y: y + 3, width: x(bar.value) - left, height: row - 9,
                              fill: bar.colour, opacity: bar.faint ? .45 : 1}));
    if (bar.error) {
      svg.append(drawn("line", {x1: x(bar.value - bar.error), x2: x(bar.value + bar.error),
                                y1: y + 10, y2: y + 10, stroke: "currentColor"}));
    }
    svg.append(drawn("text", {x: x(bar.value + (bar.error || 0)) + 6, y: y + 14},
                     bar.text || shown(bar.value)));
  });
  return svg;
}

// Whole bars in parts: {label, parts: [share]}.
function stackedChart(title, names, bars) {
  const row = 26, left = 170, width = 480, top = 30, height = top + row * bars.length + 10;
  const text = bars.map(b => b.label + " " + b.parts.map((p, i) =>
    `${(100 * p).toFixed(0)} % ${names[i]}`).join(", ")).join("; ");
  const svg = frame(width, height, title, `${title}: ${text}`);
  bars.forEach((bar, i) => {
    const y = top + row * i;
    let x = left;
    svg.append(drawn("text", {x: left - 8, y: y + 15, "text-anchor": "end"}, clipped(bar.label, 23)));
    bar.parts.forEach((part, p) => {
      const wide = (width - left - 14) * part;
      svg.append(drawn("rect", {x, y: y + 2, width: wide, height: row - 8, fill: colours[p]},
                       drawn("title", null, `${names[p]}: ${(100 * part).toFixed(1)} %`)));
      if (wide > 34) {
        svg.append(drawn("text", {x: x + wide / 2, y: y + 15, "text-anchor": "middle",
                                  style: "fill:#fff"}, `${(100 * part).toFixed(0)} %`));
      }
      x += wide;
    });
  });
  return svg;
}

// Points of two domains. `describe(i)` is what a pointer over point i, or the arrow keys, show.
function scatter(title, points, sources, describe) {
  const size = 440, top = 30, edge = 12, count = points.length / 2;
  const xs = points.filter((_, i) => i % 2 === 0), ys = points.filter((_, i) => i % 2 === 1);
  const least = [Math.min(...xs), Math.min(...ys)];
  const wide = [Math.max(...xs) - least[0], Math.max(...ys) - least[1]];
  const spread = Math.max(...wide) || 1;
  const at = (value, axis) =>
    edge + (size - 2 * edge) * (.5 + (value - least[axis] - wide[axis] / 2) / spread);
  const svg = frame(size, size + top, title, `${title}; ${sources} of the source and ` +
                    `${count - sources} of the target. Arrow keys go from point to point.`);
  svg.setAttribute("tabindex", 0);
  const dots = xs.map((_, i) => drawn("circle",
    {cx: at(xs[i], 0).toFixed(1), cy: (top + at(ys[i], 1)).toFixed(1), r: 2.5,
     fill: colours[i < sources ? 0 : 1], "fill-opacity": .6}));
  svg.append(...dots);
  const ring = drawn("circle", {r: 6, fill: "none", stroke: "currentColor", visibility: "hidden"});
  svg.append(ring);
  let current = -1;
  const show = i => {
    current = i;
    ring.setAttribute("visibility", i < 0 ? "hidden" : "visible");
    if (i < 0) return hint.hide();
    for (const axis of ["cx", "cy"]) ring.setAttribute(axis, dots[i].getAttribute(axis));
    hint.show(describe(i), dots[i].getBoundingClientRect());
  };
  svg.addEventListener("pointerover", event => {
    const i = dots.indexOf(event.target);
    if (i >= 0) show(i);
  });
  svg.addEventListener("pointerleave", () => show(-1));
  svg.addEventListener("blur", () => show(-1));
  svg.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (event.key === "Escape") show(-1);
    if (!step || count === 0) return;
    event.preventDefault();
    show((current + step + count) % count);
  });
  return svg;
}

// The one box that a page shows beside whatever is pointed at; read aloud.
const hint = {
  box: element("div", {id: "hint", role: "status", hidden: ""}),
  show(lines, beside) {
    this.box.replaceChildren(...lines.filter(Boolean).map((line, i) =>
      element(i === 0 ? "strong" : "div", null, line)));
    this.box.hidden = false;
    const room = document.documentElement.clientWidth - this.box.offsetWidth - 8;
    this.box.style.left = Math.max(8, Math.min(room, beside.left + 12)) + "px";
    this.box.style.top = beside.bottom + 10 + "px";
  },
  hide() { this.box.hidden = true; },
};
document.body.append(hint.box);

// The rows of an attribute in both domains, source above and target below, with their typical
// samples and, as lines between them, the transport.
function attributeChart(title, attribute) {
  const width = 480, height = 290, left = 14, right = 14;
  const [first, last] = [Math.min(attribute.low, ...attribute.typical.flat()),
                         Math.max(attribute.high, ...attribute.typical.flat())];
  const x = v => left + (width - left - right) * (last > first ? (v - first) / (last - first) : .5);
  const highest = Math.max(...attribute.share.flat());
  const svg = frame(width, height, title, `${title}: distance ${shown(attribute.distance)}`);
  const level = [112, 172], away = [-1, 1];
  for (const domain of [0, 1]) {
    const base = level[domain] + 10 * away[domain], share = attribute.share[domain];
    const at = i => x(attribute.low + (attribute.high - attribute.low) * i / share.length);
    const steps = share.flatMap((s, i) => {
      const y = (base + away[domain] * 72 * s / highest).toFixed(1);
      return [`${at(i).toFixed(1)},${y}`, `${at(i + 1).toFixed(1)},${y}`];
    });
    svg.append(drawn("polygon", {points: [`${at(0)},${base}`, ...steps, `${at(share.length)},${base}`]
                                   .join(" "), fill: colours[domain], opacity: .55},
                     drawn("title", null, domain === 0 ? "source" : "target")));
  }
  const count = attribute.typical[0].length, largest = Math.max(...attribute.plan);
  attribute.plan.forEach((mass, p) => {
    if (mass < .05 * largest) return;
    svg.append(drawn("line", {x1: x(attribute.typical[0][Math.floor(p / count)]), y1: level[0],
                              x2: x(attribute.typical[1][p % count]), y2: level[1],
                              stroke: "currentColor", "stroke-opacity": (.75 * mass / largest).toFixed(2)}));
  });
  for (const domain of [0, 1]) {
    for (const value of attribute.typical[domain]) {
      svg.append(drawn("circle", {cx: x(value), cy: level[domain], r: 3.5, fill: colours[domain]},
                       drawn("title", null, `typical sample ${shown(value)}`)));
    }
  }
  for (const [value, anchor] of [[first, "start"], [last, "end"]]) {
    svg.append(drawn("text", {x: x(value), y: height - 10, "text-anchor": anchor}, shown(value)));
  }
  return svg;
}

// Attributes on a circle, edges of {from, to, width (0 to 1), colour}.
function graphChart(title, nodes, edges, text) {
  const size = 420, top = 26, middle = size / 2, radius = size / 2 - 34;
  const svg = frame(size, size + top, title, `${title}: ${text}`);
  const place = new Map(nodes.map((node, i) => [node, 2 * Math.PI * i / nodes.length - Math.PI / 2]));
  const at = (node, r) => [middle + r * Math.cos(place.get(node)),
                           top + middle + r * Math.sin(place.get(node))];
  for (const edge of edges) {
    const [x1, y1] = at(edge.from, radius), [x2, y2] = at(edge.to, radius);
    svg.append(drawn("path", {d: `M${x1.toFixed(1)},${y1.toFixed(1)} Q${middle},${top + middle} ` +
                                 `${x2.toFixed(1)},${y2.toFixed(1)}`,
                              fill: "none", stroke: edge.colour,
                              "stroke-width": (.4 + 5 * edge.width).toFixed(2), "stroke-opacity": .7},
                     drawn("title", null, edge.text)));
  }
  for (const node of nodes) {
    const [x, y] = at(node, radius), [tx, ty] = at(node, radius + 16);
    svg.append(drawn("circle", {cx: x.toFixed(1), cy: y.toFixed(1), r: 3, fill: "currentColor"}),
               drawn("text", {x: tx.toFixed(1), y: (ty + 4).toFixed(1), "text-anchor": "middle"},
                     String(node)));
  }
  return svg;
}
