"""Pages as they are printed."""

PAPER_PX = 703  # of A4 between its margins


def on_paper(page, path):
    """A reader whose screen is dark prints: light, all of every table and picture, and nothing that only a hand can use."""
    page.open(path, width=PAPER_PX, media="screen")
    colours = "(() => { const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]; })()"
    shown = "[...document.querySelectorAll(%s)].filter((e) => e.checkVisibility() && e.getClientRects().length > 0).map((e) => e.outerHTML.slice(0, 80))"
    light = page.evaluate(colours)
    page.open(path, width=PAPER_PX, dark=True, media="print")
    assert page.evaluate(colours) == light and light[1] == "rgb(255, 255, 255)", (path, light, page.evaluate(colours))
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light", path
    assert page.evaluate(shown % "'button:not(th button), input, .top, details:not([open])'") == [], path
    beyond = page.evaluate("[...document.querySelectorAll('table, .chart svg, figure svg, code, p')].map((e) => Math.round(e.getBoundingClientRect().right - document.documentElement.clientWidth))")
    assert max(beyond) <= 0, f"{path}: {max(beyond)} px beyond the paper"
    # Headings have something below them.
    bare = page.evaluate("[...document.querySelectorAll('section:not(.first)')].filter((s) => s.checkVisibility() && s.innerText.trim() === s.querySelector('h2').innerText.trim() && !s.querySelector('svg')).map((s) => s.innerText)")
    assert bare == [], (path, bare)
