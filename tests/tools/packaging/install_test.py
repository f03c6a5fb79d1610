#!/usr/bin/env python3
"""`cmake --install` into an empty prefix: the program runs, manual pages are sound and say all that --help says, and
completions are there.

Usage: install_test.py BUILD_DIR
"""
import os
import re
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
from checks import check, exit_status, listed_commands, not_checked, run  # noqa: E402

BUILD = Path(sys.argv[1])


def commands(rubato, path=()):
    """(path, text of --help) of the program and all its commands."""
    text = run(rubato, *path, "--help").stdout
    yield path, text
    for name in listed_commands(text):
        yield from commands(rubato, (*path, name))


def as_read(page):
    """A page without the marks of roff."""
    for mark, text in ((r"\-", "-"), (r"\(aq", "'"), (r"\(ga", "`"), (r"\(ha", "^"), (r"\(ti", "~"), (r"\(dq", '"'), (r"\e", "\\")):
        page = page.replace(mark, text)
    return re.sub(r"\\f[BIR]|\\&", "", page)


def check_manual(prefix, helps):
    pages = prefix / "share/man/man1"
    if not shutil.which("help2man"):
        not_checked.append("help2man")
        return
    for path, text in helps:
        name = "-".join(["rubato", *path])
        page = as_read((pages / f"{name}.1").read_text())
        for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.MULTILINE):
            check(f"{name}.1 has {option} of 'rubato {' '.join(path)}'", option in page)
        for example in re.findall(r"^  (rubato .*)$", text, re.MULTILINE):
            check(f"{name}.1 has the example '{example}'", f"$ {example}\n" in page)
    check("a page per command and no other",
          {file.name for file in pages.iterdir()} == {"-".join(["rubato", *path]) + ".1" for path, _ in helps})
    for file in sorted(pages.iterdir()):
        if shutil.which("man") and shutil.which("groff"):
            done = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", file, env={**os.environ, "MANROFFSEQ": "", "MANWIDTH": "80"})
            check(f"man {file.name} without a warning", done.returncode == 0 and not done.stderr, done.stderr)
        else:
            not_checked.append("man")
        if shutil.which("mandoc"):
            done = run("mandoc", "-Tlint", "-Wwarning", file)
            said = [line for line in done.stdout.splitlines() if "date" not in line]  # a release has a version, no date
            check(f"mandoc {file.name} without a warning", not said, "\n".join(said))
        else:
            not_checked.append("mandoc")


def check_completions(prefix):
    for file in ("bash-completion/completions/rubato", "zsh/site-functions/_rubato", "fish/vendor_completions.d/rubato.fish"):
        check(f"{file} is installed", (prefix / "share" / file).is_file())


def check_python(prefix, rubato):
    """The package where cmake --install puts it."""
    says = "import rubato; print(rubato.__file__); print(len(rubato.explore('gpt3-xl', per='run')['plans']))"
    folder, env = prefix / "share/rubato/python", {**os.environ, "RUBATO": str(rubato), "PYTHONDONTWRITEBYTECODE": "1"}
    done = run(sys.executable, "-c", says, env={**env, "PYTHONPATH": str(folder)}, cwd=prefix)
    check("the Python package runs where it is installed", done.stdout == f"{folder}/rubato/__init__.py\n2\n", done.stdout + done.stderr)
    for program in (rubato, BUILD / "rubato"):  # nobody has to say where the package is
        done = run(program, "apply", "--help", env={name: value for name, value in env.items() if name != "PYTHONPATH"}, cwd="/")
        check(f"{program} apply finds the package", done.stdout.startswith("usage: rubato apply "), done.stdout + done.stderr)
    check("its types are installed", (folder / "rubato/py.typed").is_file())


def check_archive(prefix):
    """The .tar.gz of cpack: its program runs where it is unpacked."""
    packed = prefix / "packed"
    done = run("cpack", "--config", (BUILD / "CPackConfig.cmake").resolve(), "-G", "TGZ", "-B", packed)
    check("cpack -G TGZ", done.returncode == 0, done.stdout + done.stderr)
    with tarfile.open(next(packed.glob("*.tar.gz"))) as archive:
        archive.extractall(packed)
    root = next(path.parent.parent for path in packed.glob("rubato-*/bin/rubato") if path.is_file())
    check("the program of the archive runs", "Table 2" in run(root / "bin/rubato", "reproduce", "spaan2026", cwd=packed).stdout)
    installed = {path.relative_to(prefix) for folder in ("bin", "share") for path in (prefix / folder).rglob("*")
                 if path.is_file() and "__pycache__" not in path.parts}
    check("the archive holds what is installed", installed == {path.relative_to(root) for path in root.rglob("*") if path.is_file()})


def main():
    with tempfile.TemporaryDirectory() as temporary:
        prefix = Path(temporary)
        done = run("cmake", "--install", BUILD, "--prefix", prefix)
        check("cmake --install", done.returncode == 0, done.stdout + done.stderr)
        rubato = prefix / "bin/rubato"
        check("reproduce runs", "Table 2" in run(rubato, "reproduce", "spaan2026", cwd=prefix).stdout)
        for file in ("LICENSE", "README.md", "docs/install.md", "docs/examples/a100-sweep.csv"):
            check(f"{file} is installed", (prefix / "share/doc/rubato" / file).is_file())
        check("capture is installed", run(prefix / "share/rubato/capture/capture", "--help").returncode == 0)
        check_archive(prefix)
        check_python(prefix, rubato)
        check_manual(prefix, list(commands(rubato)))
        check_completions(prefix)
        check("scripts for clusters are installed", os.access(prefix / "share/rubato/clusters/give_clocks_back", os.X_OK))
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
