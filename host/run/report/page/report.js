// The sections of a report, made of the data that stands in its page.

const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.comparison.rows.map(row => row.run);
const names = shortNames(runs);
const domains = ["source", "target"];

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
const runLegend = of => legend(of.map(run => [names[run], colour(run)]));
const domainLegend = () => legend(domains.map((domain, i) => [domain, colours[i]]));
const charts = (...children) => element("div", {class: "charts"}, ...children);
const pairs = (...children) => element("div", {class: "charts pairs"}, ...children);
const stars = p => p < .001 ? "***" : p < .01 ? "**" : p < .05 ? "*" : "";
const signed = value => (value < 0 ? "−" : "+") + fixed(Math.abs(value));
const spread = values => Math.sqrt(values.reduce((sum, v) => sum + (v - mean(values)) ** 2, 0) /
                                   Math.max(1, values.length - 1));

function compared() {
  const rows = data.comparison.rows, metrics = data.metrics;
  const made = section("comparison", "Comparison",
    `Test split of the ${data.comparison.domain} domain; the best validation first. In brackets 95 % ` +
    `over users; ± the standard deviation over seeds. Below a value: the difference from ` +
    `${names[data.comparison.reference]} with its standard error, paired by user; ` +
    "* p < .05, ** p < .01, *** p < .001.");
  const best = Object.fromEntries(metrics.map(m => [m, Math.max(...rows.map(r => r.metrics[m].mean))]));
  const valid = [...new Set(rows.map(row => row.validation?.metric).filter(Boolean))];
  const interval = value => value.user_error === undefined ? ["", ""]
    : [Math.max(0, value.mean - 1.96 * value.user_error), value.mean + 1.96 * value.user_error];
  const head = element("tr", null, element("th", {scope: "col"}, "run"),
    element("th", {scope: "col"}, "variant"), element("th", {scope: "col", class: "number"}, "seeds"),
    element("th", {scope: "col", class: "number"}, "validation" + (valid.length === 1 ? `, ${valid[0]}` : "")),
    ...metrics.map(m => element("th", {scope: "col", class: "number"}, "test, " + m)));
  const body = rows.map(row => element("tr", null, element("th", {scope: "row"}, names[row.run]),
    element("td", null, row.variant), element("td", {class: "number"}, String(row.seeds.length)),
    element("td", {class: "number"}, row.validation ? fixed(row.validation.mean) : "not kept"),
    ...metrics.map(m => {
      const value = row.metrics[m], test = value.by_user;
      const text = element("td", {class: "number" + (value.mean === best[m] ? " best" : "")},
        fixed(value.mean) + (row.seeds.length > 1 ? " ± " + fixed(value.sd) : ""));
      if (value.user_error !== undefined) {
        text.append(element("div", {class: "words"}, `[${interval(value).map(fixed).join(", ")}]`));
      }
      if (test && test.pairs > 1) {
        text.append(element("div", {class: "words"}, `${signed(test.difference)} ± ` +
          `${fixed(test.standard_error)} ${stars(test.p)}`));
      }
      return text;
    })));
  made.append(element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Comparison"},
    element("table", null, element("thead", null, head), element("tbody", null, ...body))));
  const header = ["run", "variant", "seeds", "validation", ...metrics.flatMap(m =>
    [m, m + " sd over seeds", m + " low", m + " high", m + " difference", m + " p"])];
  const cells = () => rows.map(row => [row.run, row.variant, row.seeds.length,
    row.validation ? row.validation.mean : "",
    ...metrics.flatMap(m => {
      const value = row.metrics[m], test = value.by_user;
      return [value.mean, value.sd, ...interval(value), test?.difference ?? "", test?.p ?? ""];
    })]);
  const picture = barChart(`${metrics[0]}, 95 % over users`, rows.map(row => ({
    label: names[row.run], value: row.metrics[metrics[0]].mean, colour: colour(row.run),
    error: 1.96 * (row.metrics[metrics[0]].user_error || 0)})));
  made.append(charts(figure("comparison", picture, header, cells)));
}

// Mean, least and most of the values at each x.
function band(values) {
  return [...values].sort((a, b) => a[0] - b[0]).map(([x, of]) =>
    ({x, mean: mean(of), low: Math.min(...of), high: Math.max(...of)}));
}

function curves() {
  if (data.curves.length === 0) return;
  const made = section("curves", "Learning curves",
    "Validation, losses and gradient norms by step; several seeds as their mean and their range.");
  const all = [...new Set(data.curves.map(c => c.name))];
  const order = name => ["valid/", "loss/", "norm/"].findIndex(start => name.startsWith(start));
  const wanted = all.filter(name => order(name) >= 0 &&
    (!name.startsWith("valid/") || data.metrics.includes(name.slice(6))));
  wanted.sort((a, b) => order(a) - order(b) || (a < b ? -1 : 1));
  made.append(runLegend(runs.filter(run => data.curves.some(c => c.run === run))));
  made.append(charts(...wanted.map(name => {
    const of = data.curves.filter(c => c.name === name), series = [];
    for (const run of runs) {
      const at = new Map();
      for (const c of of.filter(c => c.run === run)) {
        c.steps.forEach((step, i) => at.set(step, [...(at.get(step) || []), c.values[i]]));
      }
      if (at.size) series.push({label: names[run], colour: colour(run), points: band(at)});
    }
    return figure(name.replace("/", "_"), lineChart(name, series, "step"), ["run", "seed", "step", name],
      () => of.flatMap(c => c.steps.map((step, i) => [c.run, c.seed, step, c.values[i]])));
  })));
}

function sweeps() {
  if (data.sweeps.length === 0) return;
  const made = section("sweeps", "Sweeps of the losses' weights",
    "Runs that are alike but for one weight: λ_O of the vertical loss, λ_A of the horizontal one. " +
    "Several seeds as their mean and their range. Choose by validation; the test is for reporting.");
  const symbol = {vertical: "λ_O", horizontal: "λ_A"};
  const rival = {vertical: "horizontal", horizontal: "vertical"};
  made.append(legend([["validation", colours[0]], ["test", colours[1]]]));
  made.append(charts(...data.sweeps.map((sweep, number) => {
    const lines = [["valid", `validation ${sweep.valid_metric}`, colours[0], true],
                   ["test", `test ${sweep.metric}`, colours[1], false]];
    const series = lines.filter(([key]) => sweep.points.every(p => p[key].length))
      .map(([key, label, colour, dashed]) => ({label, colour, dashed,
        points: band(new Map(sweep.points.map((p, i) => [i, p[key]])))}));
    const title = `${sweep.metric} by ${symbol[sweep.loss]}, ` +
                  `${symbol[rival[sweep.loss]]} = ${shown(sweep.other)}`;
    return figure(`sweep_${sweep.loss}_${number}`,
      lineChart(title, series, symbol[sweep.loss], sweep.points.map(p => shown(p.weight))),
      ["loss", "weight", "run", "seed", "validation", "test"],
      () => sweep.points.flatMap(p => p.test.map((test, i) =>
        [sweep.loss, p.weight, p.run, i, p.valid[i] ?? "", test])));
  })));
}

function groups() {
  if (data.groups.length === 0) return;
  const metric = data.metrics[0];
  const made = section("groups", "Groups of users",
    `${metric} by how much of a history a user has in training, ± a standard error.`);
  made.append(runLegend(runs));
  made.append(charts(...[...new Set(data.groups.map(g => g.group))].map(group => {
    const of = data.groups.filter(g => g.group === group);
    const picture = barChart(`${group}: ${counted(of[0].users, "user")}`,
      of.map(g => ({label: names[g.run], value: g.mean, error: g.standard_error,
                    colour: colour(g.run)})));
    return figure("users with " + group, picture, ["run", "group", "users", metric, "standard error"],
      () => of.map(g => [g.run, g.group, g.users, g.mean, g.standard_error]));
  })));
}

function items() {
  if (data.item_shares.length === 0) return;
  const {top, users} = data.item_shares[0], classes = data.item_classes;
  const made = section("items", "Items: popular, rare, cold",
    `What stands in the first ${top} places of the lists of ${counted(users, "user")} with something ` +
    "held out, by how popular an item is in training; and how much of what is held out they find.");
  const held = classes.reduce((sum, c) => sum + c.held_out, 0) || 1;
  made.append(legend(classes.map((c, i) => [`${c.name} (${counted(c.items, "item")})`, colours[i]])));
  const shares = stackedChart("what is recommended, and what is held out", classes.map(c => c.name),
    [...data.item_shares.map(s => ({label: names[s.run], parts: s.recommended})),
     {label: "held out", parts: classes.map(c => c.held_out / held)}]);
  const coverage = barChart(`items that are in some list, of ${classes.reduce((n, c) => n + c.items, 0)}`,
    data.item_shares.map(s => ({label: names[s.run], value: s.coverage, colour: colour(s.run),
                                text: (100 * s.coverage).toFixed(0) + " %"})));
  const parts = charts(
    figure("recommended", shares, ["run", ...classes.map(c => c.name)],
      () => [...data.item_shares.map(s => [s.run, ...s.recommended]),
             ["held out", ...classes.map(c => c.held_out / held)]]),
    figure("coverage", coverage, ["run", "coverage"],
      () => data.item_shares.map(s => [s.run, s.coverage])));
  classes.forEach((c, i) => {
    if (c.held_out === 0) return;
    const picture = barChart(`found of ${counted(c.held_out, "held-out item")}; ${c.name}`,
      data.item_shares.map(s => ({label: names[s.run], value: s.found[i] / c.held_out,
                                  colour: colour(s.run), text: `${s.found[i]} of ${c.held_out}`})));
    parts.append(figure("found, " + c.name, picture, ["run", "found", "held out"],
      () => data.item_shares.map(s => [s.run, s.found[i], c.held_out])));
  });
  made.append(parts);
}

function gaps() {
  if (data.gaps.length === 0) return;
  const made = section("gaps", "Distance of the domains",
    "Proxy A-distance of users and of items, before training and after: 0 where a linear classifier " +
    "cannot tell the domains apart, 2 where it always can. Several seeds as mean ± standard deviation.");
  const text = values => values.length === 0 ? "" : mean(values).toFixed(3) +
    (values.length > 1 ? " ± " + spread(values).toFixed(3) : "");
  const of = (run, side) => data.gaps.find(g => g.run === run && g.side === side);
  const embedded = [...new Set(data.gaps.map(g => g.run))];
  made.append(table("Proxy A-distance by variant",
    ["run", "variant", "users before", "users after", "items before", "items after"],
    embedded.map(run => [names[run], data.comparison.rows.find(r => r.run === run).variant,
      ...["users", "items"].flatMap(side => [text(of(run, side).before), text(of(run, side).after)])])));
  made.append(charts(...["users", "items"].map(side => {
    const bars = embedded.flatMap(run => ["before", "after"].filter(s => of(run, side)[s].length)
      .map(stage => ({label: `${names[run]}, ${stage}`, value: mean(of(run, side)[stage]),
                      error: spread(of(run, side)[stage]), colour: colour(run),
                      faint: stage === "before"})));
    return figure("a_distance_" + side, barChart(`A-distance of ${side}`, bars),
      ["run", "side", "stage", "seed", "distance"],
      () => embedded.flatMap(run => ["before", "after"].flatMap(stage =>
        of(run, side)[stage].map((distance, seed) => [run, side, stage, seed, distance]))));
  })));
}

function maps() {
  if (data.maps.length === 0) return;
  const made = section("maps", "Embeddings of both domains",
    "t-SNE of a sample of users and of items; points that lie together have similar embeddings. " +
    "Point at one, or move by the arrow keys, to see who it is and what was written.");
  made.append(domainLegend());
  const domain = (sample, i) => domains[i < sample.sources ? 0 : 1];
  const drawMap = (map, sample) => {
    const gap = data.gaps.find(g => g.run === map.run && g.side === map.side);
    const title = `${names[map.run]}: A-distance ${gap.after[0].toFixed(2)}`;
    const picture = scatter(title, map.points, sample.sources, i => {
      const [id, name, words, sentence] = sample.members[i];
      return [name ? `${name} (${id})` : id, domain(sample, i) + (words ? ": " + words : ""),
              sentence ? `“${sentence}”` : ""];
    });
    return figure(`${names[map.run]}_${map.side}`, picture, ["id", "domain", "x", "y", "words"],
      () => sample.members.map(([id, , words], i) =>
        [id, domain(sample, i), map.points[2 * i], map.points[2 * i + 1], words]));
  };
  for (const sample of data.samples) {
    made.append(element("h3", null, sample.side),
                charts(...data.maps.filter(m => m.side === sample.side).map(m => drawMap(m, sample))));
  }
}

// Choosers of what is drawn in `place`, which `draw` makes of the figures of a run and a side.
function figureSection(id, title, text, draw) {
  if (data.figures.length === 0) return;
  const made = section(id, title, text);
  const of = [...new Set(data.figures.map(f => f.run))], sides = ["users", "items"];
  const place = element("div", {"aria-live": "polite"});
  let run = of.length - 1, side = 0;
  const show = () => place.replaceChildren(...draw(
    data.figures.filter(f => f.run === of[run] && f.side === sides[side]), names[of[run]]));
  const choose = chooser(id + "-run", "Run", of.map(r => names[r]), value => { run = value; show(); });
  choose.querySelector("select").value = run;
  made.append(element("p", null, choose,
    chooser(id + "-side", "of", sides, value => { side = value; show(); })), domainLegend(), place);
  show();
}
const stage = figures => figures.trained ? "after training" : "before training";

function attributes() {
  figureSection("attributes", "Attributes that differ most",
    "Of the attributes whose distance was largest before training: source above, target below, their " +
    "typical samples, and as lines the transport between these, which the vertical loss makes " +
    "cheap. Distances are in units of the attribute's variance.",
    (stages, name) => [element("p", null, "Over all attributes (d_O, not relative): " +
      stages.map(of => `${shown(of.vertical)} ${stage(of)}`).join(", ") + "."), pairs(...(stages[0]?.attributes || []).flatMap((_, a) => stages.map(of => {
      const attribute = of.attributes[a];
      const title = `attribute ${attribute.number} ${stage(of)}: distance ${shown(attribute.distance)}`;
      return figure(`${name}_${of.side}_attribute_${attribute.number}_${of.trained ? "after" : "before"}`,
        attributeChart(title, attribute), ["domain", "what", "value", "share"],
        () => domains.flatMap((domain, d) => [
          ...attribute.share[d].map((share, i) => [domain, "rows up to", attribute.low +
            (attribute.high - attribute.low) * (i + 1) / attribute.share[d].length, share]),
          ...attribute.typical[d].map(value =>
            [domain, "typical sample", value, 1 / attribute.typical[d].length])]));
    })))]);
}

function graphs() {
  figureSection("graphs", "Attribution graphs",
    "Which attributes are said by which others: the strongest edges of both domains, and those that " +
    "differ most. The horizontal loss makes the graphs alike.",
    (stages, name) => stages.flatMap(of => {
      const nodes = [...new Set(of.edges.flatMap(e => [e[0], e[1]]))].sort((a, b) => a - b);
      const most = Math.max(1e-12, ...of.edges.flatMap(e => [e[2], e[3]]));
      const words = e => `${e[0]} and ${e[1]}: source ${shown(e[2])}, target ${shown(e[3])}`;
      const drawnOf = (label, colourOf, size) => {
        const edges = [...of.edges].sort((a, b) => size(b) - size(a)).slice(0, 18);
        const picture = graphChart(`${label}, ${stage(of)}`, nodes, edges.map(e => ({from: e[0], to: e[1],
          width: size(e) / most, colour: colourOf(e), text: words(e)})),
          edges.slice(0, 5).map(words).join("; "));
        return figure(`${name}_${of.side}_${label.replaceAll(" ", "_")}_${of.trained ? "after" : "before"}`,
          picture, ["attribute", "other attribute", "source", "target"], () => edges);
      };
      const differing = [...of.edges].sort((a, b) => Math.abs(b[2] - b[3]) - Math.abs(a[2] - a[3]));
      return [
        element("h3", null, `${stage(of)}: distance of the graphs ${shown(of.horizontal)}`),
        charts(drawnOf("source", () => colours[0], e => e[2]),
               drawnOf("target", () => colours[1], e => e[3]),
               drawnOf("what differs most", e => colours[e[2] > e[3] ? 0 : 1],
                       e => Math.abs(e[2] - e[3]))),
        table(`What differs most ${stage(of)}`, ["attributes", "source", "target", "difference"],
              differing.slice(0, 8).map(e => [`${e[0]} – ${e[1]}`, shown(e[2]), shown(e[3]),
                                              shown(Math.abs(e[2] - e[3]))]))];
    }));
}

function signals() {
  if (data.weights.length === 0) return;
  const made = section("signals", "Signals",
    "Weights of the signals, each scaled by its spread within users' rows; and which signal raised " +
    "how many of the held-out items in the lists most.");
  made.append(charts(
    ...data.weights.map(of => figure(`${names[of.run]}_${of.domain}_weights`,
      barChart(`${names[of.run]}, ${of.domain}: weights`, of.weights.map(([signal, weight]) =>
        ({label: signal, value: weight, colour: colour(of.run)}))),
      ["signal", "weight"], () => of.weights)),
    ...data.hits.filter(of => of.hits.length).map(of => {
      const all = of.hits.reduce((sum, [, hits]) => sum + hits, 0);
      return figure(`${names[of.run]}_hits`,
        barChart(`${names[of.run]}: ${counted(all, "hit")} of ${counted(of.users, "user")} by signal`,
          of.hits.map(([signal, hits]) => ({label: signal, value: hits, colour: colour(of.run),
                                            text: `${hits} (${(100 * hits / all).toFixed(0)} %)`}))),
        ["signal", "hits"], () => of.hits);
    })));
}

function lists() {
  if (data.users.length === 0) return;
  const made = section("lists", "Lists",
    data.users.length < data.users_to_choose_from
      ? `${data.users.length} of ${data.users_to_choose_from} users with something held out, drawn at random.`
      : "Every user with something held out.");
  const place = element("div", {id: "list", "aria-live": "polite"});
  const called = i => data.items[i][1] ? `${data.items[i][1]} (${data.items[i][0]})` : data.items[i][0];
  const quoted = text => element("div", {class: "words"}, `“${text}”`);
  const show = number => {
    const [, history, heldOut, chosen, validation] = data.users[number];
    const wanted = new Set(heldOut), wrote = new Map(history);
    const named = (title, made) => element("div", null, element("h3", null, title),
                                           element("ul", null, ...made));
    const columns = data.listed.map((run, r) => element("div", null, element("h3", null, names[run]),
      element("ol", null, ...chosen[r].map(([item, , signal, because]) => {
        const line = element("li", null, element("span", wanted.has(item) ? {class: "hit"} : null,
          called(item) + (wanted.has(item) ? " ✓ held out" : "")));
        const reasons = because.map(b => typeof b === "number" ? called(b) : b).join(", ");
        const why = [signal < 0 ? "" : data.signals[signal], reasons].filter(Boolean).join(": ");
        if (why) line.append(element("div", {class: "words"}, "because of " + why));
        const own = because.filter(b => typeof b === "number" && wrote.get(b)).map(b => wrote.get(b));
        if (own.length) line.append(element("div", {class: "words"}, `the user wrote “${own[0]}”`));
        if (data.items[item][2]) line.append(quoted(data.items[item][2]));
        return line;
      }))));
    place.replaceChildren(
      element("div", {class: "lists"},
        named("History", history.map(([item, words]) =>
          element("li", null, called(item), ...(words ? [quoted(words)] : [])))),
        named("Held out for the test", heldOut.map(item => element("li", null, called(item)))),
        ...(validation.length ? [named("In validation, not recommended again",
          validation.map(item => element("li", null, called(item))))] : [])),
      element("div", {class: "lists"}, ...columns));
  };
  made.append(element("p", null, chooser("user", "User", data.users.map(user => user[0]), show)), place);
  show(0);
  made.append(actions("lists", ["run", "user", "rank", "item", "score", "held_out"],
    () => data.users.flatMap(([user, , heldOut, chosen]) => data.listed.flatMap((run, r) =>
      chosen[r].map(([item, score], i) =>
        [run, user, i + 1, data.items[item][0], score, heldOut.includes(item) ? 1 : 0])))));
}

document.getElementById("about").textContent =
  `${runs.length === 1 ? "One run" : runs.length + " runs"}, ${data.comparison.domain} domain; ` +
  `cfaa_gpu ${data.version}`;
for (const part of [compared, groups, items, curves, sweeps, gaps, maps, attributes, graphs, signals,
                    lists]) part();
document.getElementById(location.hash.slice(1))?.scrollIntoView();  // made after it was asked for
