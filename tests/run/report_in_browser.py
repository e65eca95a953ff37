"""Opens a report in headless Chromium at two widths and says what is wrong with it.

    python3 tests/run/report_in_browser.py report.html PROFILE_FOLDER

Exits with 1, one problem a line on standard error.
"""

import sys

sys.dont_write_bytecode = True

from browser import Browser  # noqa: E402

SECTIONS = ["comparison", "groups", "items", "curves", "sweeps", "gaps", "maps", "attributes",
            "graphs", "signals", "lists"]
problems = []


def check(holds, problem):
    if not holds:
        problems.append(problem)


def check_sections(page, width):
    found = page.evaluate("[...document.querySelectorAll('section')].map(s => s.id)")
    check(found == SECTIONS, f"{width}: sections are {found}")
    low = page.evaluate("""[...document.querySelectorAll('section, section svg')].filter(
        e => e.getBoundingClientRect().height < 40).map(e => e.id || e.textContent)""")
    check(not low, f"{width}: nothing is to be seen of {low}")
    wide = page.evaluate("document.documentElement.scrollWidth")
    check(wide <= width, f"{width}: the page is {wide} wide")
    text = page.evaluate("document.getElementById('main').innerHTML")
    for wrong in ("NaN", "undefined", "Infinity", "[object"):
        check(wrong not in text, f"{width}: {wrong} is shown")
    unnamed = page.evaluate("""[...document.querySelectorAll('svg[role=img]')].filter(
        e => !e.getAttribute('aria-label')).length + [...document.querySelectorAll('select')].filter(
        e => !document.querySelector(`label[for="${e.id}"]`)).length""")
    check(unnamed == 0, f"{width}: {unnamed} pictures or choosers have no name")


def check_maps(page, width):
    page.point_at("#maps svg circle")
    check(page.evaluate("!hint.box.hidden"), f"{width}: pointing at a dot shows nothing")
    told = page.evaluate("hint.box.textContent")
    check("strings" in told or "drums" in told, f"{width}: a dot's review is not told: {told}")
    page.evaluate("document.querySelector('#maps svg').focus()")
    page.press("ArrowRight")
    check(page.evaluate("hint.box.textContent") != told, f"{width}: arrow keys move nothing")
    page.press("Escape")
    check(page.evaluate("hint.box.hidden"), f"{width}: the hint stays")


def choose(page, chooser, value):
    page.evaluate(f"""(() => {{ const s = document.getElementById('{chooser}'); s.value = {value};
                      s.dispatchEvent(new Event('change')); }})()""")


def check_choosers(page, width):
    for chooser, place in (("user", "lists"), ("attributes-side", "attributes"),
                           ("graphs-side", "graphs")):
        shown = f"document.getElementById('{place}').innerHTML"
        before = page.evaluate(shown)
        choose(page, chooser, 1)
        check(page.evaluate(shown) != before, f"{width}: choosing by {chooser} changes nothing")


def check_downloads(page):
    broken = page.evaluate("""[...document.querySelectorAll('figure svg')].filter(e => new DOMParser()
        .parseFromString(svgText(e), 'image/svg+xml').querySelector('parsererror')).length""")
    check(broken == 0, f"{broken} pictures are no SVG of their own")
    saved = page.evaluate("""(() => { const names = [];
        URL.createObjectURL = blob => { names.push(blob.size); return 'blob:none'; };
        HTMLAnchorElement.prototype.click = () => {};
        document.querySelectorAll('.actions button').forEach(b => b.click()); return names; })()""")
    buttons = page.evaluate("document.querySelectorAll('.actions button').length")
    check(len(saved) == buttons and min(saved) > 10, f"of {buttons} buttons {len(saved)} save")
    page.evaluate("document.querySelectorAll('.actions details').forEach(d => { d.open = true; })")
    page.evaluate("new Promise(done => setTimeout(done, 50))")
    tables = page.evaluate("""[...document.querySelectorAll('.actions details')].filter(
        d => !d.querySelector('td')).length""")
    check(tables == 0, f"{tables} pictures have no table")


def check_print(page):
    page.for_print()
    check(page.evaluate("getComputedStyle(document.querySelector('.actions')).display") == "none",
          "buttons are printed")
    check(page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)",
          "paper is not white")


def main(report, profile):
    browser = Browser("chromium", profile)
    for width, dark in ((400, True), (1400, False)):
        page = browser.open("file://" + report, width, 900, dark)
        check_sections(page, width)
        check_maps(page, width)
        check_choosers(page, width)
        if width == 1400:
            check_downloads(page)
        check_print(page)
        check(page.evaluate("document.title") == "cfaa_gpu report", f"{width}: text ran as a script")
        check(not page.errors, f"{width}: {page.errors}")
        check(not page.fetched, f"{width}: fetched {page.fetched}")
    browser.close()
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


main(*sys.argv[1:])
