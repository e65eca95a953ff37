// The sections of a report, made of the data that stands in its page.

const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main");
const runs = data.comparison.rows.map(row => row.run);
const names = shortNames(runs);
const colours = ["#1f6fb2", "#c2571a", "#2e8b57", "#8457b0", "#b03a5b", "#7a6a1f", "#2a8a94",
                 "#666f78"];

// Paths without what they have in common.
function shortNames(paths) {
  const parts = paths.map(path => path.split("/"));
  let common = 0;
  while (paths.length > 1 && parts.every(p => p.length > common + 1 && p[common] === parts[0][common])) {
    ++common;
  }
  return Object.fromEntries(paths.map((path, i) => [path, parts[i].slice(common).join("/")]));
}
const colour = run => colours[runs.indexOf(run) % colours.length];


const stars = p => p < .001 ? "***" : p < .01 ? "**" : p < .05 ? "*" : "";

function compared() {
  const rows = data.comparison.rows, metrics = data.metrics;
  const made = section("comparison", "Comparison",
    `The ${data.comparison.domain} domain's test split; the best validation first. Differences are ` +
    `against ${names[data.comparison.reference]}, paired by user, ± a standard error; ` +
    "* p < .05, ** p < .01, *** p < .001.");
  const best = Object.fromEntries(metrics.map(m => [m, Math.max(...rows.map(r => r.metrics[m].mean))]));
  const head = element("tr", null, element("th", {scope: "col"}, "run"),
                       element("th", {scope: "col"}, "variant"),
                       element("th", {scope: "col", class: "number"}, "seeds"),
                       element("th", {scope: "col", class: "number"}, "validation"),
                       ...metrics.map(m => element("th", {scope: "col", class: "number"}, m)));
  const body = rows.map(row => element("tr", null, element("th", {scope: "row"}, names[row.run]),
    element("td", null, row.variant), element("td", {class: "number"}, String(row.seeds.length)),
    element("td", {class: "number"}, row.validation ? fixed(row.validation.mean) : "not kept"),
    ...metrics.map(m => {
      const value = row.metrics[m], test = value.by_user;
      const text = element("td", {class: "number" + (value.mean === best[m] ? " best" : "")},
        fixed(value.mean) + (row.seeds.length > 1 ? " ± " + fixed(value.sd) : ""));
      if (test && test.pairs > 1) {
        text.append(element("br"), element("span", {class: "words"},
          `${test.difference < 0 ? "−" : "+"}${fixed(Math.abs(test.difference))} ± ` +
          `${fixed(test.standard_error)} ${stars(test.p)}`));
      }
      return text;
    })));
  made.append(element("div", {class: "scroll"}, element("table", null,
    element("thead", null, head), element("tbody", null, ...body))));
  made.append(actions("comparison", ["run", "variant", "seeds", "validation", ...metrics],
    () => rows.map(row => [row.run, row.variant, row.seeds.length,
                           row.validation ? row.validation.mean : "",
                           ...metrics.map(m => row.metrics[m].mean)])));
}

function legend(of) {
  return element("div", {class: "legend"}, ...of.map(run => element("span", null,
    element("i", {style: "background:" + colour(run)}), names[run])));
}

function curves() {
  if (data.curves.length === 0) return;
  const made = section("curves", "Learning curves",
    "Losses, gradient norms and validation by step; several seeds as their mean and their range.");
  const all = [...new Set(data.curves.map(c => c.name))];
  const order = name => ["valid/", "loss/", "norm/"].findIndex(start => name.startsWith(start));
  const wanted = all.filter(name => order(name) >= 0 &&
    (!name.startsWith("valid/") || data.metrics.includes(name.slice(6))));
  wanted.sort((a, b) => order(a) - order(b) || (a < b ? -1 : 1));
  made.append(legend(runs.filter(run => data.curves.some(c => c.run === run))));
  const charts = element("div", {class: "charts"});
  for (const name of wanted) {
    const series = [];
    for (const run of runs) {
      const of = data.curves.filter(c => c.run === run && c.name === name);
      const at = new Map();
      for (const c of of) {
        c.steps.forEach((step, i) => at.set(step, [...(at.get(step) || []), c.values[i]]));
      }
      const points = [...at].sort((a, b) => a[0] - b[0]).map(([step, values]) => ({
        x: step, mean: values.reduce((a, b) => a + b) / values.length,
        low: Math.min(...values), high: Math.max(...values)}));
      if (points.length) series.push({run, points});
    }
    const picture = lineChart(name, series);
    charts.append(element("figure", null, picture,
      actions(name.replace("/", "_"), ["run", "seed", "step", name],
              () => data.curves.filter(c => c.name === name)
                .flatMap(c => c.steps.map((step, i) => [c.run, c.seed, step, c.values[i]])),
              () => picture)));
  }
  made.append(charts);
}

function groups() {
  if (data.groups.length === 0) return;
  const metric = data.metrics[0];
  const made = section("groups", "Groups of users",
    `${metric} by how much of a history a user has in training, ± a standard error.`);
  made.append(legend(runs));
  const charts = element("div", {class: "charts"});
  for (const group of [...new Set(data.groups.map(g => g.group))]) {
    const of = data.groups.filter(g => g.group === group);
    const picture = barChart(`${group}: ${of[0].users} ${of[0].users === 1 ? "user" : "users"}`,
      of.map(g => ({label: names[g.run], value: g.mean, error: g.standard_error,
                    colour: colour(g.run)})));
    charts.append(element("figure", null, picture));
  }
  made.append(charts, actions("groups", ["run", "group", "users", metric, "standard_error"],
    () => data.groups.map(g => [g.run, g.group, g.users, g.mean, g.standard_error])));
}

function maps() {
  if (data.maps.length === 0) return;
  const made = section("maps", "Embeddings of both domains",
    "t-SNE of a sample of users and of items; points that lie together have similar embeddings. " +
    "A-distance: 0 where a linear classifier cannot tell the domains apart, 2 where it always can.");
  made.append(element("div", {class: "legend"}, ...["source", "target"].map((domain, i) =>
    element("span", null, element("i", {style: "background:" + colours[i]}), domain))));
  const charts = element("div", {class: "charts"});
  for (const map of data.maps) {
    const title = `${names[map.run]}, ${map.side}: A-distance ${map.distance.toFixed(2)}`;
    const picture = scatter(title, map);
    charts.append(element("figure", null, picture,
      actions(`${names[map.run]}_${map.side}`, ["id", "domain", "x", "y"],
              () => map.ids.map((id, i) => [id, map.from_target[i] ? "target" : "source",
                                            map.points[2 * i], map.points[2 * i + 1]]),
              () => picture)));
  }
  made.append(charts);
}
function signals() {
  if (data.weights.length === 0) return;
  const made = section("signals", "Signals",
    "Weights of the signals, each scaled by its spread within users' rows, and how many of the " +
    "hits in the lists below were raised most by which.");
  const charts = element("div", {class: "charts"});
  for (const shownRun of data.weights) {
    const picture = barChart(`${names[shownRun.run]}, ${shownRun.domain}`,
      shownRun.weights.map(w => ({label: w.signal, value: w.weight, colour: colour(shownRun.run)})));
    charts.append(element("figure", null, picture));
  }
  for (const run of data.listed) {
    const hits = hitsBySignal(run);
    if (hits.size === 0) continue;
    const picture = barChart(`${names[run]}: hits by signal`,
      [...hits].map(([signal, count]) => ({label: signal, value: count, colour: colour(run)})));
    charts.append(element("figure", null, picture));
  }
  made.append(charts, actions("signals", ["run", "domain", "signal", "weight"],
    () => data.weights.flatMap(r => r.weights.map(w => [r.run, r.domain, w.signal, w.weight]))));
}
function hitsBySignal(run) {
  const hits = new Map(), place = data.listed.indexOf(run);
  for (const user of data.users) {
    const wanted = new Set(user.held_out.map(i => i.item));
    for (const item of user.lists[place]) {
      if (item.signal && wanted.has(item.item)) hits.set(item.signal, (hits.get(item.signal) || 0) + 1);
    }
  }
  return hits;
}

function lists() {
  if (data.users.length === 0) return;
  const made = section("lists", "Lists",
    data.users.length < data.users_to_choose_from
      ? `${data.users.length} of ${data.users_to_choose_from} users with something held out, drawn at random.`
      : "Every user with something held out.");
  const choice = element("select", {id: "user"},
    ...data.users.map((user, i) => element("option", {value: i}, user.user)));
  made.append(element("p", {class: "chooser"}, element("label", {for: "user"}, "User "), choice));
  const place = element("div", {id: "list", "aria-live": "polite"});
  made.append(place);
  const called = item => item.title ? `${item.title} (${item.item})` : item.item;
  const show = () => {
    const user = data.users[Number(choice.value)], wanted = new Set(user.held_out.map(i => i.item));
    const named = (title, items) => element("div", null, element("h3", null, title),
      element("ul", null, ...items.map(i => element("li", null, called(i)))));
    const columns = data.listed.map((run, r) => element("div", null, element("h3", null, names[run]),
      element("ol", null, ...user.lists[r].map(item => {
        const line = element("li", null,
          element("span", wanted.has(item.item) ? {class: "hit"} : null,
                  called(item) + (wanted.has(item.item) ? " ✓ held out" : "")));
        const why = [item.signal, item.because.join(", ")].filter(Boolean).join(": ");
        if (why) line.append(element("div", {class: "words"}, "because of " + why));
        if (item.review) line.append(element("div", {class: "words"}, `“${item.review}”`));
        return line;
      }))));
    place.replaceChildren(element("div", {class: "lists"}, named("History", user.history),
      named("Held out", user.held_out)), element("div", {class: "lists"}, ...columns));
  };
  choice.onchange = show;
  show();
  made.append(actions("lists", ["run", "user", "rank", "item", "score", "held_out"],
    () => data.users.flatMap(user => data.listed.flatMap((run, r) => user.lists[r].map(item =>
      [run, user.user, item.rank, item.item, item.score,
       user.held_out.some(i => i.item === item.item) ? 1 : 0])))));
}

document.getElementById("about").textContent =
  `${runs.length === 1 ? "One run" : runs.length + " runs"}, ${data.comparison.domain} domain; ` +
  `cfaa_gpu ${data.version}`;
for (const part of [compared, curves, groups, maps, signals, lists]) part();
document.getElementById(location.hash.slice(1))?.scrollIntoView();  // made after it was asked for
