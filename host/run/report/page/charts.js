// Charts as SVG, drawn of numbers.

// Lines with the spread of several seeds as a band: mean, least and most at each step.
function lineChart(title, series) {
  const width = 480, height = 260, left = 58, right = 14, top = 26, bottom = 34;
  const xs = series.flatMap(s => s.points.map(p => p.x));
  const ys = series.flatMap(s => s.points.flatMap(p => [p.low, p.high]));
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const x = v => left + (width - left - right) * (x1 > x0 ? (v - x0) / (x1 - x0) : .5);
  const y = v => height - bottom - (height - top - bottom) * (y1 > y0 ? (v - y0) / (y1 - y0) : .5);
  const svg = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"},
                    drawn("title", null, title), drawn("text", {x: left, y: 16}, title));
  for (const part of [0, .5, 1]) {
    const value = y0 + part * (y1 - y0);
    svg.append(drawn("line", {class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value)}),
               drawn("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, shown(value)));
  }
  for (const value of x1 > x0 ? [x0, x1] : [x0]) {
    svg.append(drawn("text", {x: x(value), y: height - 12, "text-anchor": "middle"}, shown(value)));
  }
  svg.append(drawn("text", {x: (left + width - right) / 2, y: height - 12, "text-anchor": "middle"},
                   "step"));
  for (const s of series) {
    if (s.points.some(p => p.high > p.low)) {
      const edge = [...s.points.map(p => `${x(p.x)},${y(p.high)}`),
                    ...[...s.points].reverse().map(p => `${x(p.x)},${y(p.low)}`)];
      svg.append(drawn("polygon", {points: edge.join(" "), fill: colour(s.run), opacity: .2}));
    }
    const line = drawn("polyline", {points: s.points.map(p => `${x(p.x)},${y(p.mean)}`).join(" "),
                                    fill: "none", stroke: colour(s.run), "stroke-width": 2});
    line.append(drawn("title", null, `${names[s.run]}: ${shown(s.points.at(-1).mean)} at the end`));
    svg.append(line);
  }
  return svg;
}

// Horizontal bars: {label, value, error, colour}.
function barChart(title, bars) {
  const row = 24, left = 190, width = 560, top = 30, height = top + row * bars.length + 10;
  const most = Math.max(1e-12, ...bars.map(b => b.value + (b.error || 0)));
  const x = v => left + (width - left - 70) * Math.max(0, v) / most;
  const svg = drawn("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"},
                    drawn("title", null, title), drawn("text", {x: 12, y: 18}, title));
  bars.forEach((bar, i) => {
    const y = top + row * i;
    svg.append(drawn("text", {x: left - 8, y: y + 14, "text-anchor": "end"}, bar.label),
               drawn("rect", {x: left, y: y + 3, width: x(bar.value) - left, height: row - 9,
                              fill: bar.colour}));
    if (bar.error) {
      svg.append(drawn("line", {x1: x(bar.value - bar.error), x2: x(bar.value + bar.error),
                                y1: y + 10, y2: y + 10, stroke: "currentColor"}));
    }
    svg.append(drawn("text", {x: x(bar.value + (bar.error || 0)) + 6, y: y + 14}, shown(bar.value)));
  });
  return svg;
}

function scatter(title, map) {
  const size = 440, top = 30, edge = 12;
  const xs = map.points.filter((_, i) => i % 2 === 0), ys = map.points.filter((_, i) => i % 2 === 1);
  const least = [Math.min(...xs), Math.min(...ys)];
  const spread = Math.max(Math.max(...xs) - least[0], Math.max(...ys) - least[1]) || 1;
  const at = (value, axis) => edge + (size - 2 * edge) * (value - least[axis]) / spread;
  const svg = drawn("svg", {viewBox: `0 0 ${size} ${size + top}`, role: "img"},
                    drawn("title", null, title), drawn("text", {x: edge, y: 18}, title));
  map.ids.forEach((id, i) => svg.append(
    drawn("circle", {cx: at(xs[i], 0).toFixed(1), cy: (top + at(ys[i], 1)).toFixed(1), r: 2.5,
                     fill: colours[map.from_target[i] ? 1 : 0], "fill-opacity": .6},
          drawn("title", null, id))));
  return svg;
}
