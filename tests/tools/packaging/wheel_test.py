#!/usr/bin/env python3
"""The wheel in a fresh environment: `rubato` on the PATH and `import rubato` do the main job and find each other. The source archive
makes the same wheel, and CMake finds in it all that it compiles.

Usage: wheel_test.py BUILD_DIR SOURCE_DIR; exit status 77: pip cannot load what makes wheels.
"""
import json
import os
import re
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
from checks import check, exit_status, finished, run  # noqa: E402

BUILD, SOURCE = (Path(word).resolve() for word in sys.argv[1:3])
MOST_MB = 15
OLDEST_GLIBC = 34  # 2.34, of RHEL 9; Debian 12 builds for it
EXAMPLE = "docs/examples/run.pt.trace.json.gz"
ENV = {**{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "RUBATO")}, "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}


def made(folder):
    """Wheel and source archive."""
    done = run(SOURCE / "tools/release", BUILD, folder, "wheel", "sdist")
    if done.returncode == 77:
        print(done.stderr)
        sys.exit(77)
    check("tools/release makes a wheel and a source archive", done.returncode == 0, done.stdout + done.stderr)
    sums = run("sha256sum", "--check", "SHA256SUMS", cwd=folder)
    check("SHA256SUMS are those of both files", sums.returncode == 0 and len(sums.stdout.splitlines()) == 2, sums.stdout + sums.stderr)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def pip(home, *words):
    """In that environment, by the pip that tools/release has loaded: a pip of its own takes 3 s to unpack."""
    return run(BUILD / "release_tools/bin/pip", "-q", "--disable-pip-version-check", "--python", home / "bin/python", *words, env=ENV)


def environment(folder, wheel):
    """Of its own, with the wheel installed and no network."""
    finished(sys.executable, "-m", "venv", "--without-pip", folder)
    done = pip(folder, "install", "--no-index", wheel)
    check("pip installs the wheel", done.returncode == 0, done.stdout + done.stderr)
    return folder


def check_wheel(wheel):
    """Which systems it is for, and its size."""
    size_mb = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {size_mb:.2f} MB")
    check(f"the wheel has at most {MOST_MB} MB", size_mb <= MOST_MB)
    glibc = re.search(r"-py3-none-manylinux_2_(\d+)_", wheel.name)
    check("the wheel is for any Python and for manylinux", glibc, wheel.name)
    if "bookworm" in Path("/etc/os-release").read_text():
        check("the wheel runs with the glibc of RHEL 9", int(glibc[1]) <= OLDEST_GLIBC, wheel.name)


def check_program(home):
    """The README's job by the command on the PATH, the same as by the program that was packed."""
    rubato, folder = home / "bin/rubato", home / "share/doc/rubato"
    for words in (("--version",), ("reproduce", "spaan2026"), ("explore", EXAMPLE, "--slack", "5", "--per", "run", "--odds", "0")):
        packed, own = (run(program, *words, cwd=folder, env=ENV) for program in (rubato, BUILD / "rubato"))
        check(f"rubato {' '.join(words)} is the same", packed.returncode == 0 and packed.stdout == own.stdout, packed.stderr + packed.stdout)
    check("an error keeps its status", run(rubato, "explore", "nowhere.json", env=ENV).returncode == run(BUILD / "rubato", "explore", "nowhere.json").returncode != 0)


def check_python(home):
    """`import rubato` without a word of where it is, and commands that the package runs, from any folder."""
    says = ("import json, rubato; plans = rubato.explore('gpt3-xl', gpu='a100-sxm4-80gb', slack=2)['plans']; "
            "print(json.dumps([rubato.__file__, rubato.__version__, plans]))")
    done = run(home / "bin/python", "-c", says, cwd="/", env=ENV)
    check("import rubato; rubato.explore", done.returncode == 0, done.stderr)
    where, version, plans = json.loads(done.stdout)
    check("the package is the environment's", where.startswith(str(home)), where)
    check("and names the wheel's version", finished(home / "bin/rubato", "--version").stdout.startswith(f"rubato {version} "), version)
    own = json.loads(finished(BUILD / "rubato", "explore", "gpt3-xl", "--gpu", "a100-sxm4-80gb", "--slack", "2", "--json").stdout)["plans"]
    for plan in (*plans, *own):
        plan.pop("solve_time_s")
    check("its plans are the program's", plans == own)
    clusters = home / "share/rubato/clusters"
    check("scripts for clusters are there and may run", all(os.access(clusters / name, os.X_OK) for name in ("clocks_of_rank", "give_clocks_back")))
    for program in (home / "bin/rubato", next(home.glob("lib/*/site-packages/rubato/bin/rubato"))):
        for command in ("apply", "measure", "doctor", "watch"):
            done = run(program, command, "--help", cwd="/", env=ENV)
            check(f"{program.name} {command} finds the package", done.stdout.startswith(f"usage: rubato {command}"), done.stdout + done.stderr)


def check_gone(home):
    done = pip(home, "uninstall", "-y", "rubato-dvfs")
    left = [path for path in home.rglob("*") if "rubato" in f"{path.relative_to(home)}" and path.is_file()]
    check("pip uninstall leaves no file", done.returncode == 0 and not left, f"{left}")


def check_sources(archive, wheel, folder):
    """The source archive has all that CMake compiles, and makes the same wheel."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder)
    root = next(folder.iterdir())
    done = run("cmake", "-S", root, "-B", folder / "build", "-G", "Ninja", "-DRUBATO_TESTS=OFF", "-DRUBATO_BENCH=OFF")
    check("CMake finds all files of the source archive", done.returncode == 0, done.stdout + done.stderr)
    again = folder / "again"
    done = run(root / "tools/release", BUILD, again, "wheel")
    check("the source archive makes the same wheel", done.returncode == 0 and [path.name for path in again.glob("*.whl")] == [wheel.name], done.stdout + done.stderr)
    check("with the same files in it", next(again.glob("*.whl")).stat().st_size == wheel.stat().st_size)


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wheel, archive = made(folder / "made")
        check_wheel(wheel)
        home = environment(folder / "home", wheel)
        check_program(home)
        check_python(home)
        check_gone(home)
        check_sources(archive, wheel, folder / "unpacked")
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
