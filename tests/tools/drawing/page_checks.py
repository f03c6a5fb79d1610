"""What tests of pages in a browser share: making pages, and what holds for each of them."""
import json
import re
import sys
from pathlib import Path

RUBATO, SOURCE = sys.argv[1], Path(sys.argv[2])
sys.path[:0] = [str(SOURCE / "tools" / "site"), str(SOURCE / "tests" / "tools")]
import browser  # noqa: E402, F401
from checks import finished  # noqa: E402
from paper import on_paper  # noqa: E402

EXAMPLES = SOURCE / "docs" / "examples"


def run(*arguments, status=0):
    return finished(RUBATO, *arguments, status=status).stdout


def report(folder, db, name, *arguments):
    run("report", "--db", folder / db, "-o", folder / name, *arguments)
    return folder / name


def count(page, selector):
    return page.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")


def text(page, selector):
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).textContent").replace("\u00a0", " ")


def percents(words):
    return [float(number) for number in re.findall(r"([+-]?\d+\.\d+) %", words)]


def sound(page, path):
    """Opens a page as all its readers do; at last on a desk, light."""
    on_paper(page, path)
    for width, dark, media in ((390, True, "screen"), (390, False, "screen"), (1300, True, "screen"), (1300, False, "print"), (1300, False, "screen")):
        page.open(path, width=width, dark=dark, media=media)
        assert page.console == [], (path, width, page.console)
        beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert beyond <= 0, f"{path}: {beyond} px wider than a window of {width}"
        # What a telephone shows is drawn for it.
        if width == 390:
            widest = page.evaluate("Math.max(0, ...[...document.querySelectorAll('.chart:not(.scroll) svg')].map((e) => e.getBoundingClientRect().width))")
            assert widest <= 390, (path, widest)
        # Texts of pictures end within them.
        cut = page.evaluate("[...document.querySelectorAll('.chart svg')].flatMap((svg) => { const r = svg.getBoundingClientRect(); return [...svg.querySelectorAll('text')].filter((e) => { const b = e.getBoundingClientRect(); return b.width > 0 && (b.right > r.right + 1 || b.left < r.left - 1); }).map((e) => e.textContent); })")
        assert cut == [], (path, width, cut)
        # Everything in a picture is where there is a picture.
        assert page.evaluate("[...document.querySelectorAll('svg *')].every((e) => ![...e.attributes].some((a) => /NaN|undefined|Infinity/.test(a.value)))"), path
    tops = page.evaluate("[...document.querySelectorAll('h1, dl.five, h2')].map((e) => e.tagName + ' ' + e.textContent)")
    assert tops[0].startswith("H1") and tops[1].startswith("DL ") and len(tops[1]) > 40 and tops[2].startswith("H2 "), (path, tops)
    # Who cannot see a picture is told what it shows; who has no pointer reaches all that can be pressed.
    assert page.evaluate("[...document.querySelectorAll('main svg')].every((e) => e.getAttribute('aria-hidden') || e.getAttribute('aria-label') || e.closest('.wide'))"), path
    assert page.evaluate("[...document.querySelectorAll('button, select, input')].every((e) => e.tabIndex === 0 && (e.textContent || e.ariaLabel || e.labels.length > 0))"), path
    for heading in ("h1", "title"):
        assert str(EXAMPLES) not in text(page, heading), text(page, heading)
