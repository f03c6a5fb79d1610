#!/usr/bin/env python3
"""The documentation as a site: it builds, holds every document, can be searched, and no link in it leads nowhere.

Usage: docs_site_test.py RUBATO SOURCE_DIR; exit status 77: mkdocs is not installed.
"""
import json
import shutil
import sys
import tempfile
from pathlib import Path

RUBATO, SOURCE = sys.argv[1], Path(sys.argv[2])
sys.path.insert(0, str(SOURCE / "tools" / "site"))
import browser  # noqa: E402
import build as site  # noqa: E402


def check_built(out):
    pages, broken = site.build(out, RUBATO)
    assert broken == [], broken
    documents = [path.relative_to(SOURCE / "docs").with_suffix(".html") for path in (SOURCE / "docs").rglob("*.md")]
    missing = [path for path in documents if not (out / path).exists() and path.name != "README.html"]
    assert missing == [] and pages > len(documents), (missing, pages)
    assert "slate" in (out / "index.html").read_text(), "no dark mode"
    found = json.loads((out / "search" / "search_index.json").read_text())["docs"]
    assert any("Lagrange multiplier" in entry["text"] and entry["location"].startswith("glossary") for entry in found)
    # Tables and lists are such: what GitHub takes for one, the site does too.
    glossary = (out / "glossary.html").read_text()
    assert "<table>" in glossary and "| --- |" not in glossary
    assert "rubato latency-scan" in (out / "commands.html").read_text()
    terms = (out / "terms.html").read_text()
    assert terms.count("<table>") == 3 and "<td>limit not reached</td>" in terms and "<td>anchored</td>" in terms


def check_from_disk(out):
    """Opened as a file: searched, and dark where the reader prefers that."""
    if not browser.found():
        return
    with browser.Browser() as page:
        page.open(out / "tutorial" / "your-capture.html", dark=True)
        assert page.console == [], page.console
        assert page.evaluate("document.body.dataset.mdColorScheme") == "slate"
        found = page.evaluate("""(async () => { const field = document.querySelector('.md-search__input'); field.focus(); field.value = 'slack';
            for (let i = 0; i < 100; ++i) { field.dispatchEvent(new Event('keyup')); await new Promise((done) => setTimeout(done, 100));
              if (document.querySelector('.md-search-result__link')) return true; } return false; })()""")
        assert found, "nothing is found"


def check_finds_broken_links(out):
    (out / "made.html").write_text('<a href="glossary.html#nowhere">a</a> <a href="gone.html">b</a> <img src="gone.png">'
                                   '<a href="glossary.html">c</a> <a href="https://example.org/gone">d</a> <a id="here" href="#here">e</a>')
    broken = list(site.broken_links(out))
    assert broken == ["made.html: glossary.html#nowhere", "made.html: gone.html", "made.html: gone.png"], broken


def check_navigation(folder):
    for page in [page for pages in site.NAVIGATION.values() for page in pages]:
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text("# x\n")
    assert "trust.md" in site.navigation(folder)
    (folder / "forgotten.md").write_text("# x\n")
    try:
        site.navigation(folder)
    except SystemExit as refused:
        assert "forgotten.md" in str(refused)
    else:
        raise AssertionError("a document outside NAVIGATION is not an error")


def check_relinking():
    cases = {("[a](../LICENSE)", "docs/install.md"): "[a](LICENSE.txt)", ("[a](docs/trust.md#x)", "README.md"): "[a](trust.md#x)",
             ("[a](../../LICENSE)", "docs/examples/README.md"): "[a](../LICENSE.txt)", ("[a](https://x.org)", "README.md"): "[a](https://x.org)",
             ("[a](#own)", "docs/trust.md"): "[a](#own)"}
    for (text, name), expected in cases.items():
        assert site.relinked(text, name) == expected, (text, name, site.relinked(text, name))
    assert site.readable("Words:\n- one\n- two\n") == "Words:\n\n- one\n- two\n"
    assert site.readable("```\nWords:\n- one\n```\n") == "```\nWords:\n- one\n```\n"


def main():
    check_relinking()
    with tempfile.TemporaryDirectory() as temporary:
        check_navigation(Path(temporary))
    if not shutil.which("mkdocs"):
        print("skipped: mkdocs is not installed")
        return 77
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "site"
        check_built(out)
        check_from_disk(out)
        check_finds_broken_links(out)
    print("5 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
