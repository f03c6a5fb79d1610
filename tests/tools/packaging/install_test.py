#!/usr/bin/env python3
"""`cmake --install` into an empty prefix: the program runs, manual pages are sound and say all that --help says, and
completions are there.

Usage: install_test.py BUILD_DIR
"""
import base64
import hashlib
import os
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile
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
    """The package where cmake --install puts it, and in a folder of its own by pip."""
    says = "import rubato; print(rubato.__file__); print(len(rubato.explore('gpt3-xl', granularity='iteration', pandas=False)['plans']))"
    folder, env = prefix / "share/rubato/python", {**os.environ, "RUBATO": str(rubato), "PYTHONDONTWRITEBYTECODE": "1"}
    done = run(sys.executable, "-c", says, env={**env, "PYTHONPATH": str(folder)}, cwd=prefix)
    check("the Python package runs where it is installed", done.stdout == f"{folder}/rubato/__init__.py\n2\n", done.stdout + done.stderr)
    for program in (rubato, BUILD / "rubato"):  # nobody has to say where the package is
        done = run(program, "apply", "--help", env={name: value for name, value in env.items() if name != "PYTHONPATH"}, cwd="/")
        check(f"{program} apply finds the package", done.stdout.startswith("usage: rubato apply "), done.stdout + done.stderr)
    check("its types are installed", (folder / "rubato/py.typed").is_file())
    check_pip(prefix, folder, rubato, says)


def check_pip(prefix, folder, rubato, says):
    """`pip install` in a virtual environment of its own, as docs/python.md says: built in isolation, without a network."""
    environment = prefix / "environment"
    if run(sys.executable, "-m", "venv", environment).returncode != 0:
        not_checked.append("pip")
        return
    python, env = environment / "bin/python", {**os.environ, "RUBATO": str(rubato), "PIP_NO_INDEX": "1", "PYTHONPATH": ""}
    for how in ([], ["--editable"]):
        done = run(python, "-m", "pip", "install", "-q", *how, folder, env=env)
        check(f"pip install {' '.join(how)}", done.returncode == 0, done.stdout + done.stderr)
        done = run(python, "-c", says, env=env, cwd=prefix)
        home = f"{folder}/rubato/" if how else f"{environment}/lib/"
        check(f"the package runs where pip {' '.join(how)} put it", done.stdout.startswith(home) and done.stdout.endswith("\n2\n"), done.stdout + done.stderr)
        done = run(environment / "bin/rubato-py", "--help")
        check("pip installs rubato-py", done.returncode == 0 and "capture" in done.stdout, done.stderr)
        files = run(python, "-m", "pip", "show", "-f", "rubato-gpu").stdout
        check("pip knows the package and its version", run(rubato, "--version").stdout.split()[1] == files.split("Version: ")[1].split("\n")[0], files)
        done = run(python, "-m", "pip", "uninstall", "-q", "-y", "rubato-gpu")
        left = list(environment.glob("lib/*/site-packages/*rubato*"))
        check("pip uninstall leaves nothing", done.returncode == 0 and not left, f"{left}")
    check_wheel(folder, prefix)


def check_wheel(folder, prefix):
    """RECORD lists every file of a wheel with its digest and size, and equal sources give equal bytes."""
    wheels = []
    for name in ("first", "second"):
        (prefix / name).mkdir()
        made = run(sys.executable, "-c", f"import build_wheel; print(build_wheel.build_wheel('{prefix / name}')); print(build_wheel.build_sdist('{prefix / name}'))", cwd=folder)
        check("a wheel and a source archive are made", made.returncode == 0, made.stderr)
        wheels.append(prefix / name / made.stdout.split()[0])
    check("equal sources give equal wheels", wheels[0].read_bytes() == wheels[1].read_bytes())
    with zipfile.ZipFile(wheels[0]) as wheel:
        rows = [line.rsplit(",", 2) for line in wheel.read(next(name for name in wheel.namelist() if name.endswith("RECORD"))).decode().split()]
        check("RECORD lists every file", sorted(row[0] for row in rows) == sorted(wheel.namelist()))
        for name, digest, size in rows:
            data = wheel.read(name)
            right = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            check(f"RECORD knows {name}", name.endswith("RECORD") or (digest, size) == (f"sha256={right}", str(len(data))))
        check("py.typed is in the wheel", "rubato/py.typed" in wheel.namelist())
    again = prefix / "unpacked"
    with tarfile.open(next((prefix / "first").glob("*.tar.gz"))) as archive:
        archive.extractall(again)
    root = next(again.iterdir())
    done = run(sys.executable, "-c", f"import build_wheel; print(build_wheel.build_wheel('{again}'))", cwd=root)
    check("the source archive makes the same wheel", (again / wheels[0].name).read_bytes() == wheels[0].read_bytes(), done.stderr)


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
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
