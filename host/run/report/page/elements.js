"use strict";
// What every page of cfaa_gpu is made of: elements, tables' cells, buttons that save.

// element("td", {class: "number"}, "text", child...): text is never read as HTML.
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function drawn(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function section(id, title, text) {
  const made = element("section", {id, "aria-labelledby": id + "-title"},
                       element("h2", {id: id + "-title"}, title), element("p", null, text));
  document.getElementById("contents").append(element("a", {href: "#" + id}, title));
  main.append(made);
  return made;
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
function actions(name, header, rows, picture) {
  const made = element("div", {class: "actions"});
  const csv = element("button", {type: "button"}, "data as CSV");
  csv.onclick = () => save(name + ".csv", "text/csv",
                           [header, ...rows()].map(row => row.map(cell).join(",")).join("\n") + "\n");
  made.append(csv);
  if (picture) {
    const svg = element("button", {type: "button"}, "picture as SVG");
    svg.onclick = () => save(name + ".svg", "image/svg+xml",
                             new XMLSerializer().serializeToString(picture()));
    made.append(svg);
  }
  return made;
}
const shown = value => value === 0 ? "0" : Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5
  ? value.toExponential(1) : String(Number(value.toPrecision(3)));
const fixed = value => value.toFixed(4);
