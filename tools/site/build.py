#!/usr/bin/env python3
"""The documents as a site: staged for mkdocs, built, and every link of the result looked up.

Usage: build.py OUT [RUBATO]; exit status 77: mkdocs is not installed. RUBATO adds a page with the help of all commands.
"""
import html.parser
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

SOURCE = Path(__file__).resolve().parents[2]
NAVIGATION = {
    "Start": ["index.md", "install.md", "trust.md", "examples/README.md"],
    "Tutorials": ["tutorial/your-capture.md", "tutorial/a-paper.md", "tutorial/a-cluster.md"],
    "Guides": ["captured-runs.md", "model-shapes.md", "parallel.md", "pipeline.md", "add-a-gpu.md", "capture.md", "apply.md", "clusters.md", "replay.md", "cost.md", "budget.md",
               "experiments.md"],
    "Reference": ["commands.md", "terms.md", "schema.md", "python.md", "traces.md", "captures.md", "trace-import.md", "gpus.md", "accuracy.md", "reproduced.md",
                  "glossary.md"],
    "Methods": ["models.md", "search.md", "graphs.md", "contention.md", "network.md"],
    "Develop": ["contributing.md", "architecture.md", "style.md", "testing.md", "performance.md"],
}
MADE = {"commands.md", "terms.md"}  # by the program
# Files outside docs/ that documents link to, and where the site has them.
MOVED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "LICENSE": "LICENSE.txt"}
SETTINGS = """site_name: Rubato
docs_dir: {stage}
site_dir: {out}
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.sections, toc.integrate, content.code.copy]
  palette:
  - {{media: "(prefers-color-scheme: light)", scheme: default, primary: white, toggle: {{icon: material/weather-night, name: Dark}}}}
  - {{media: "(prefers-color-scheme: dark)", scheme: slate, primary: black, toggle: {{icon: material/weather-sunny, name: Light}}}}
markdown_extensions: [tables, fenced_code, sane_lists, toc, admonition]
plugins: [search]
nav:
{nav}
"""


def readable(text):
    """GitHub lets lists and tables follow a paragraph at once, the site's Markdown wants an empty line."""
    lines, fenced = [], False
    starts = re.compile(r"([-*] |\d+\. |\|)")
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        before = lines[-1] if lines else ""
        if not fenced and starts.match(line) and before.strip() and not starts.match(before) and not before.startswith((" ", "#")):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def relinked(text, name):
    """Links as they are from where the site has the document `name` (a path below the repository's root)."""
    staged = Path(MOVED.get(name, Path(name).relative_to("docs") if name.startswith("docs/") else name))

    def moved(match):
        target, anchor = re.fullmatch(r"([^#]*)(#.*)?", match[2]).groups()
        if not target or re.match(r"\w+:", target):
            return match[0]
        path = (SOURCE / name).parent / target
        try:
            inside = path.resolve().relative_to(SOURCE).as_posix()
        except ValueError:
            return match[0]
        new = MOVED.get(inside) or (inside[len("docs/"):] if inside.startswith("docs/") else None)
        if new is None:
            return match[0]  # the checker names it
        up = "../" * (len(staged.parts) - 1)
        return f"{match[1]}({up}{new}{anchor or ''})"

    return re.sub(r"(\])\(([^)\s]+)\)", moved, text)


def commands_page(rubato):
    """--help of all commands."""
    def help_of(path):
        return subprocess.run([rubato, *path, "--help"], text=True, capture_output=True, check=True).stdout

    parts = ["# Commands\n\nThe help of every command, as `rubato COMMAND --help` prints it and `man rubato-COMMAND` shows it.\n"]

    def add(path):
        text = help_of(path)
        parts.append(f"## rubato {' '.join(path)}\n\n```text\n{text}```\n" if path else f"```text\n{text}```\n")
        for name in re.findall(r"^  ([a-z][a-z-]*)(?:  |$)", text, re.MULTILINE) if " COMMAND" in text else []:
            add((*path, name))

    add(())
    return "\n".join(parts)


def terms_page(rubato):
    """`rubato help terms` as tables."""
    text = subprocess.run([rubato, "help", "terms", "--wide"], text=True, capture_output=True, check=True).stdout
    parts = ["# Words and signs in tables\n\nAs `rubato help terms` prints them.\n"]
    for line in text.splitlines():
        if line.startswith("  "):
            word, meaning = re.split(r" {2,}", line.strip(), maxsplit=1)
            parts.append(f"| {word} | {meaning} |")
        elif line:
            parts.append(f"\n## {line}\n\n| Word | Meaning |\n| --- | --- |")
    return "\n".join(parts) + "\n"


def stage(folder, rubato):
    shutil.copytree(SOURCE / "docs", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.md"))
    for path in [*(SOURCE / name for name in MOVED), *(SOURCE / "docs").rglob("*.md")]:
        name = path.relative_to(SOURCE).as_posix()
        target = folder / MOVED.get(name, name.removeprefix("docs/"))
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
        target.write_text(readable(relinked(text, name)) if path.suffix == ".md" else text, encoding="utf-8")
    if rubato:
        (folder / "commands.md").write_text(commands_page(rubato), encoding="utf-8")
        (folder / "terms.md").write_text(terms_page(rubato), encoding="utf-8")


def navigation(folder):
    """@throws SystemExit where a document has no place in NAVIGATION, or the other way round"""
    lines = []
    named = {page for pages in NAVIGATION.values() for page in pages}
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} - {"changelog.md"}
    there = {page for page in there if not page.startswith("decisions/")}
    if there - named or named - there - MADE:
        sys.exit(f"NAVIGATION and documents differ: {', '.join(sorted((there ^ named) - MADE))}")
    for title, pages in NAVIGATION.items():
        lines.append(f"- '{title}':")
        lines += [f"  - {page}" for page in pages if (folder / page).exists()]
    lines.append("- Decisions:")
    lines += [f"  - decisions/{page.name}" for page in sorted((folder / "decisions").glob("*.md"))]
    lines.append("- changelog.md")
    return "\n".join(lines)


def searched_from_disk(out):
    """Pages opened as files may not fetch the search's index nor start its worker: there they get both from a script."""
    index = (out / "search" / "search_index.json").read_text(encoding="utf-8")
    worker = next((out / "assets" / "javascripts" / "workers").glob("search.*.js")).read_text(encoding="utf-8")
    (out / "search" / "from_disk.js").write_text(
        f"var __search = {{index: Promise.resolve({index}), worker: URL.createObjectURL(new Blob([{json.dumps(worker)}], {{type: 'text/javascript'}}))}};\n",
        encoding="utf-8")
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        script = Path(*[".."] * (len(page.relative_to(out).parts) - 1), "search", "from_disk.js").as_posix()
        load = f"<script>if (location.protocol === 'file:') document.write('<script src=\"{script}\"><\\/script>')</script>\n"
        page.write_text(re.sub(r"( *<script src=\"[^\"]*/?assets/javascripts/bundle)", lambda found: load + found[1], text, count=1), encoding="utf-8")


class Page(html.parser.HTMLParser):
    """Anchors of a page and what it refers to."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.targets = {""}, []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value and tag != "base":
                self.targets.append(value)


def broken_links(out):
    """'PAGE: LINK' of what leads nowhere within the site."""
    pages = {path: Page(path) for path in out.rglob("*.html") if path.name != "404.html"}
    for path, page in sorted(pages.items()):
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            to = to / "index.html" if to.is_dir() else to
            missing = not to.exists() or (to in pages and unquote(parts.fragment) not in pages[to].anchors)
            if missing:
                yield f"{path.relative_to(out)}: {target}"


def build(out, rubato):
    """@return how many pages, and broken links"""
    with tempfile.TemporaryDirectory(prefix="rubato-site-") as temporary:
        folder = Path(temporary) / "docs"
        folder.mkdir()
        stage(folder, rubato)
        settings = Path(temporary) / "mkdocs.yml"
        settings.write_text(SETTINGS.format(stage=folder, out=out, nav=navigation(folder)), encoding="utf-8")
        done = subprocess.run(["mkdocs", "build", "--quiet", "--clean", "--config-file", settings], text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"mkdocs: {done.stdout}{done.stderr}")
    searched_from_disk(out)
    return len(list(out.rglob("*.html"))), list(broken_links(out))


def main():
    if not shutil.which("mkdocs"):
        print("skipped: mkdocs is not installed (apt-get install mkdocs mkdocs-material)")
        return 77
    out = Path(sys.argv[1]).resolve()
    pages, broken = build(out, sys.argv[2] if len(sys.argv) > 2 else None)
    for link in broken:
        print(f"broken link: {link}")
    print(f"{pages} pages in {out}, {len(broken)} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
