"use strict";
// What every page of cfaa_gpu is made of: elements, tables, choosers, buttons that save.

// element("td", {class: "number"}, "text", child...): text is never read as HTML.
function element(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}
function drawn(name, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}
function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A section of #main with a heading, named in #contents.
function section(id, title, text) {
  const made = element("section", {id, "aria-labelledby": id + "-title"},
                       element("h2", {id: id + "-title"}, title), element("p", null, text));
  document.getElementById("contents").append(element("a", {href: "#" + id}, title));
  document.getElementById("main").append(made);
  return made;
}

// Numbers stand to the right; the first column names the row.
function table(caption, header, rows) {
  const cells = (name, row) => row.map((value, i) => element(i === 0 ? "th" : name,
    i === 0 ? {scope: "row"} : typeof value === "number" || /^[−+\d]/.test(value)
      ? {class: "number"} : null, String(value)));
  return element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
    element("table", null, element("caption", null, caption),
      element("thead", null, element("tr", null,
        ...header.map(name => element("th", {scope: "col"}, name)))),
      element("tbody", null, ...rows.map(row => element("tr", null, ...cells("td", row))))));
}

// A labelled select; values are places in `options`.
function chooser(id, label, options, change) {
  const choice = element("select", {id},
    ...options.map((option, i) => element("option", {value: i}, option)));
  choice.onchange = () => change(Number(choice.value));
  return element("span", {class: "chooser"}, element("label", {for: id}, label + " "), choice);
}

function save(name, type, text) {
  const link = element("a", {download: name, href: URL.createObjectURL(new Blob([text], {type}))});
  link.click();
  URL.revokeObjectURL(link.href);
}
// A cell that a spreadsheet shows and does not compute.
function cell(value) {
  const text = String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
  return /[",\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
}
const csvText = (header, rows) =>
  [header, ...rows].map(row => row.map(cell).join(",")).join("\n") + "\n";

// A picture that stands alone: with the style that the page would give it, on white.
function svgText(picture) {
  const copy = picture.cloneNode(true);
  const [, , width, height] = copy.getAttribute("viewBox").split(" ");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.style.color = "#1b1f24";
  copy.prepend(drawn("style", null, "text{fill:#4b5560;font:13px sans-serif}.axis{stroke:#d5dae0}"),
               drawn("rect", {width, height, fill: "#fff"}));
  return new XMLSerializer().serializeToString(copy);
}

// Buttons that save the data and the picture, and the data as a table where `header` fits one.
function actions(name, header, rows, picture) {
  const made = element("div", {class: "actions"});
  const csv = element("button", {type: "button", "aria-label": `${name}: data as CSV`}, "CSV");
  csv.onclick = () => save(name + ".csv", "text/csv", csvText(header, rows()));
  made.append(csv);
  if (!picture) return made;
  const svg = element("button", {type: "button", "aria-label": `${name}: picture as SVG`}, "SVG");
  svg.onclick = () => save(name + ".svg", "image/svg+xml", svgText(picture));
  made.append(svg);
  const more = element("details", null, element("summary", null, "table"));
  more.addEventListener("toggle", () => {  // made when it is first asked for
    const all = more.childElementCount > 1 ? [] : rows();
    if (all.length) more.append(table(name, header, all.slice(0, 200).map(row => row.map(short))));
    if (all.length > 200) more.append(element("p", null, `200 of ${all.length} rows; CSV has all`));
  });
  made.append(more);
  return made;
}
function figure(name, picture, header, rows) {
  return element("figure", null, picture, actions(name, header, rows, picture));
}

const shown = value => value === 0 ? "0" : Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5
  ? value.toExponential(1) : String(Number(value.toPrecision(3)));
const short = value => typeof value === "number" && !Number.isInteger(value) ? shown(value) : value;
const fixed = value => value.toFixed(4);
const mean = values => values.reduce((a, b) => a + b, 0) / values.length;
const counted = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;
