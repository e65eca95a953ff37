
// What `cfaa_gpu serve` shows: lists of users, items that are alike, and a list for who writes.
const main = document.getElementById("main");
let token = "";
let runs = [], shownRuns = [], domain = "";

// The JSON of a path; asks for the token where the server wants one.
async function ask(path, parameters, body) {
  const query = new URLSearchParams(parameters || {}).toString();
  const headers = token ? {Authorization: "Bearer " + token} : {};
  const options = body ? {method: "POST", body: JSON.stringify(body),
                          headers: {...headers, "Content-Type": "application/json"}} : {headers};
  const response = await fetch(path + (query ? "?" + query : ""), options);
  const answer = await response.json();
  if (response.ok) return answer;
  const error = new Error(answer.error || "status " + response.status);
  error.status = response.status;
  throw error;
}
const problem = error => element("p", {class: "problem", role: "alert"}, error.message);
const place = run => ({run, domain});
const called = entry => entry.title ? `${entry.title} (${entry.item || entry.id})`
                                    : entry.item || entry.id;

// The lists of every run that is shown, side by side; `get` gives one run's element.
async function sideBySide(where, get) {
  const lists = await Promise.all(shownRuns.map(async run => {
    try {
      return element("div", {"data-run": run},
                     ...(runs.length > 1 ? [element("h3", null, run)] : []), await get(run));
    } catch (error) {
      return element("div", {"data-run": run}, problem(error));
    }
  }));
  where.replaceChildren(element("div", {class: "lists"}, ...lists));
}

function reasonOf(item) {
  const because = item.because.join(", ");
  if (!item.signal) return because ? "near " + because : "";
  return item.signal + (because ? ": " + because : "");
}
// `before`: the ids of the list that this one takes the place of, to show what changed.
function list(items, before) {
  if (items.length === 0) return element("p", null, "Nothing to show.");
  return element("ol", null, ...items.map(item => {
    const made = element("li", {"data-item": item.item}, called(item) + " ");
    if (before && !before.includes(item.item)) {
      made.append(element("span", {class: "hit"}, "new "));
    }
    made.append(element("span", {class: "words"}, shown(item.score)));
    for (const text of [item.because ? reasonOf(item) : "", item.review ? `“${item.review}”` : ""]) {
      if (text) made.append(element("br"), element("span", {class: "words"}, text));
    }
    return made;
  }));
}

// A field that finds users or items while one types; `take` is given what was chosen.
function finder(kind, label, take) {
  const id = "find-" + kind + "-" + document.querySelectorAll("input").length;
  const input = element("input", {id, type: "search", autocomplete: "off", maxlength: 200});
  const choices = element("ul", {class: "choices", "aria-live": "polite"});
  let asked = 0;
  // What is still being asked for comes too late.
  const choose = found => { ++asked; choices.replaceChildren(); take(found); };
  input.oninput = async () => {
    const mine = ++asked, text = input.value.trim();
    if (!text) return choices.replaceChildren();
    try {
      const found = (await ask("find", {...place(shownRuns[0]), kind, text, top: 8}))[kind];
      if (mine !== asked) return;
      choices.replaceChildren(...found.map(entry => {
        const button = element("button", {type: "button"}, called(entry));
        button.onclick = () => choose(entry);
        return element("li", null, button);
      }));
      if (found.length === 0) choices.replaceChildren(element("li", null, "None begins so."));
    } catch (error) {
      choices.replaceChildren(problem(error));
    }
  };
  input.onkeydown = event => {
    if (event.key !== "Enter" || !input.value.trim()) return;
    choose({id: input.value.trim(), title: ""});
  };
  return element("div", {class: "chooser"}, element("label", {for: id}, label + " "), input, choices);
}

function userSection() {
  const made = section("user", "A user",
    "Find a user by the beginning of the id; see what was liked, and what is recommended and why.");
  const where = element("div", {id: "user-lists", "aria-live": "polite"});
  made.append(finder("users", "User", async user => {
    await sideBySide(where, async run => {
      const [history, answer] = await Promise.all([
        ask("history", {...place(run), user: user.id}),
        ask("recommend", {...place(run), user: user.id, why: true})]);
      const liked = element("details", null, element("summary", null,
        `${user.id} liked ${history.items.length} in training`),
        element("ul", null, ...history.items.map(item => element("li", null, called(item),
          ...(item.review ? [element("span", {class: "words"}, ` “${item.review}”`)] : [])))));
      return element("div", null, liked, list(answer.items));
    });
  }), where);
}

function itemSection() {
  const made = section("item", "An item",
    "Find an item by its id or its title; see which are most like it.");
  const where = element("div", {id: "item-lists", "aria-live": "polite"});
  made.append(finder("items", "Item", async item => {
    await sideBySide(where, async run => list(
      (await ask("similar", {...place(run), item: item.id})).items));
  }), where);
}

function yourSection() {
  const made = section("you", "You",
    "Choose what you liked and, if you want, write what you think of it: your list changes with it. " +
    "Nothing is kept.");
  const written = element("div"), where = element("div", {id: "your-lists", "aria-live": "polite"});
  const reviews = new Map(), before = {};
  let asked = 0, waiting = null;

  async function show() {
    const mine = ++asked;
    if (reviews.size === 0) return where.replaceChildren();
    const body = {reviews: [...reviews.values()].map(r => ({
      item: r.item, rating: Number(r.rating.value), text: r.text.value})), why: true};
    const fresh = element("div");
    await sideBySide(fresh, async run => {
      const answer = await ask("recommend", null, {...body, ...place(run)});
      const items = answer.items;
      const lines = [list(items, before[run])];
      if (answer.unknown_items.length) {
        lines.unshift(element("p", null, "Not known to this run: " + answer.unknown_items.join(", ")));
      }
      before[run] = items.map(item => item.item);
      return element("div", null, ...lines);
    });
    if (mine === asked) where.replaceChildren(...fresh.childNodes);
  }
  function soon() {
    clearTimeout(waiting);
    waiting = setTimeout(show, 300);
  }
  function add(entry) {
    if (reviews.has(entry.id)) return;
    const n = reviews.size;
    const rating = element("select", {id: "rating-" + n}, ...[5, 4, 3, 2, 1].map(stars =>
      element("option", {value: stars}, `${stars} of 5`)));
    const text = element("textarea", {id: "text-" + n, maxlength: 5000});
    const remove = element("button", {type: "button"}, "remove");
    const box = element("div", {class: "written"}, element("strong", null, called(entry)), " ",
      element("label", {for: rating.id}, "rating ", rating), remove,
      element("label", {for: text.id}, "your review (may stay empty)"), text);
    rating.onchange = soon;
    text.oninput = soon;
    remove.onclick = () => { reviews.delete(entry.id); box.remove(); show(); };
    reviews.set(entry.id, {item: entry.id, rating, text});
    written.append(box);
    show();
  }
  made.append(finder("items", "Something you liked", add), written, where);
}

function chooseRuns(about) {
  if (runs.length < 2) return;
  const boxes = runs.map((run, i) => {
    const box = element("input", {type: "checkbox", id: "run-" + i});
    box.checked = shownRuns.includes(run.run);
    box.onchange = () => {
      shownRuns = runs.filter((_, j) => boxes[j].firstChild.checked).map(r => r.run);
      if (shownRuns.length === 0) { box.checked = true; shownRuns = [run.run]; }
    };
    return element("label", {for: box.id}, box, " " + run.run);
  });
  about.after(element("fieldset", null, element("legend", null, "Runs, side by side"), ...boxes));
}

function askForToken(about) {
  const input = element("input", {id: "token", type: "password", autocomplete: "off"});
  const go = element("button", {type: "button"}, "go on");
  const box = element("p", null, element("label", {for: "token"}, "This server asks for a token "),
                      input, " ", go);
  go.onclick = () => { token = input.value; box.remove(); start(); };
  about.after(box);
  about.textContent = "";
}

async function start() {
  const about = document.getElementById("about");
  try {
    runs = (await ask("runs")).runs;
  } catch (error) {
    if (error.status === 401) return askForToken(about);
    return about.replaceChildren(problem(error));
  }
  domain = runs[0].domains[0].domain;
  shownRuns = runs.slice(0, 2).map(run => run.run);
  const first = runs[0].domains[0];
  about.textContent = `${runs.map(run => run.run).join(", ")}: ${first.users} users and ` +
    `${first.items} items of the ${domain} domain.`;
  chooseRuns(about);
  userSection();
  itemSection();
  if (runs.some(run => run.domains[0].newcomers)) yourSection();
}
start();
