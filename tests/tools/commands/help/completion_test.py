#!/usr/bin/env python3
"""Scripts of `rubato completion` complete commands, options and their values, in bash, zsh and fish.

Usage: completion_test.py RUBATO
"""
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
from checks import check, exit_status, not_checked, run  # noqa: E402

RUBATO = Path(sys.argv[1]).resolve()


def completed_by_bash(script, *words):
    typed = " ".join(f"'{word}'" for word in words)
    done = run("bash", "-uc", f"source '{script}'; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _rubato; "
               'for word in "${COMPREPLY[@]}"; do echo "$word"; done', cwd=script.parent / "files")
    check(f"bash completes {words}", done.returncode == 0 and not done.stderr, done.stderr)
    return set(done.stdout.split())


def check_bash(script):
    cases = {("rubato", "swe"): {"sweep", "sweep-latency"}, ("rubato", "sweep", ""): {"new", "run", "slurm"},
             ("rubato", "sweep", "run", "--dry"): {"--dry-run"}, ("rubato", "explore", "--switching", ""): {"none", "spec"},
             ("rubato", "explore", "--switching", "none", "--sla"): {"--slack"}, ("rubato", "explore", "no such"): set(),
             ("rubato", "explore", "--granularity", "pass,ke"): {"pass,kernel"}, ("rubato", "explore", "--goal", "e"): {"edp", "ed2p", "energy"},
             ("rubato", "explore", "--gpu", "a100-s"): {"a100-sxm4-80gb", "a100-spec.json"}, ("rubato", "explore", "gpt3"): {"gpt3-xl"},
             ("rubato", "replay", "a100"): {"a100-spec.json"}, ("rubato", "explore", "--db", ""): set()}
    for words, expected in cases.items():
        found = completed_by_bash(script, *words)
        check(f"bash completes {words} to {expected}", found == expected, found)


def check_zsh(script):
    if not shutil.which("zsh"):
        not_checked.append("zsh")
        return
    done = run("zsh", "-fc", f"autoload -U compinit && compinit -D && source '{script}' && print $_comps[rubato] && "
               "whence -w _rubato_sweep_run")
    check("zsh reads its completion", done.stdout == "_rubato\n_rubato_sweep_run: function\n" and not done.stderr,
          done.stdout + done.stderr)
    # What its own functions are given.
    asked = run("zsh", "-fc", f"compdef() {{ }}; source '{script}'; _arguments() {{ print -l -- \"$@\" }}; _rubato_explore; "
                "_alternative() { print -l -- \"$@\" }; _rubato_shipped a b")
    for part in (":TEXT:_values -s , TEXT iteration gpu pass kernel launch ", ": _rubato_shipped ", " a100-sxm4-80gb ", ": _rubato_shipped gpt3-xl\n",
                 "names:shipped name:(a b)\nfiles:file:_files\n"):
        check(f"zsh is told {part}", part in asked.stdout and not asked.stderr, asked.stdout + asked.stderr)


def check_fish(script):
    if not shutil.which("fish"):
        not_checked.append("fish")
        return
    with tempfile.TemporaryDirectory() as home:
        for typed, expected in (("rubato sweep ", "slurm"), ("rubato explore --switching ", "spec"), ("rubato sweep run --dry", "--dry-run"),
                                ("rubato explore --granularity pass,ke", "pass,kernel"), ("rubato explore --gpu a100-s", "a100-sxm4-80gb"),
                                ("rubato explore --gpu a100-s", "a100-spec.json"), ("rubato explore --goal ", "ed2p"), ("rubato explore gpt", "gpt3-xl")):
            done = run("fish", "--no-config", "-c", f"source '{script}'; complete -C '{typed}'", env={**os.environ, "HOME": home},
                       cwd=script.parent / "files")
            words = [line.split("\t")[0] for line in done.stdout.splitlines()]
            check(f"fish completes '{typed}' with {expected}", expected in words and not done.stderr, done.stdout + done.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "files").mkdir()
        (Path(folder) / "files" / "a100-spec.json").touch()
        for shell, check_it in (("bash", check_bash), ("zsh", check_zsh), ("fish", check_fish)):
            script = Path(folder) / shell
            done = run(RUBATO, "completion", shell, "-o", script)
            check(f"rubato completion {shell}", done.returncode == 0, done.stderr)
            check_it(script)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
