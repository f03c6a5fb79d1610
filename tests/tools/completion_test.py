#!/usr/bin/env python3
"""The scripts in tools/packaging/completions complete commands, options and their values, in bash, zsh and fish.

Usage: completion_test.py RUBATO
"""
import os
import shutil
import sys
import tempfile
from pathlib import Path

from checks import check, exit_status, not_checked, run

RUBATO = Path(sys.argv[1]).resolve()


SCRIPTS = Path(__file__).resolve().parents[2] / "tools" / "packaging" / "completions"
# What was typed, and what must be offered for its last word.
CASES = {("lat",): {"latency", "latency-scan"}, ("experiment", ""): {"new", "run", "slurm"}, ("experiment", "run", "--dry"): {"--dry-run"},
         ("pipeline", "scale", "--sch"): {"--schedule"}, ("explore", "--switching", "free", "--sla"): {"--slack"},
         ("explore", "no such"): set(), ("explore", "--per", "pass,ke"): {"pass,kernel"},
         ("explore", "--goal", "e"): {"edp", "ed2p", "energy"}, ("explore", "--gpu", "a100-s"): {"a100-sxm4-40gb", "a100-sxm4-80gb", "a100-spec.json"},
         ("explore", "gpt3"): {"gpt3-xl"}, ("replay", "a100"): {"a100-spec.json"}, ("explore", "--db", "a100"): {"a100-spec.json"}}
# Run before a script of zsh: what compsys would be given, a word a line.
ZSH = """compdef() { }
_describe() { print -l -- ${fits%%:*}; }
_files() { print -l -- ${words[CURRENT]}*(N); }
"""


def check_cases(shell, completed):
    for words, expected in CASES.items():
        done = completed(words)
        found = {line.split("\t")[0] for line in done.stdout.splitlines() if line}
        check(f"{shell} completes {words} to {expected}", found == expected and not done.stderr, f"{found} {done.stderr}")


def quoted(words):
    return " ".join(f"'{word}'" for word in words)


def main():
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a100-spec.json").touch()
        check_cases("bash", lambda words: run(
            "bash", "-uc", f"source '{SCRIPTS}/rubato.bash'; COMP_WORDS=('{RUBATO}' {quoted(words)}); COMP_CWORD={len(words)}; _rubato; "
            'for word in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do echo "$word"; done', cwd=folder))
        if shutil.which("zsh"):
            done = run("zsh", "-fc", f"autoload -U compinit && compinit -D && source '{SCRIPTS}/_rubato' && print $_comps[rubato]")
            check("zsh reads its completion", done.stdout == "_rubato\n" and not done.stderr, done.stdout + done.stderr)
            check_cases("zsh", lambda words: run(
                "zsh", "-fc", f"{ZSH} source '{SCRIPTS}/_rubato'; words=('{RUBATO}' {quoted(words)}); CURRENT=$#words; _rubato; true", cwd=folder))
        else:
            not_checked.append("zsh")
        if shutil.which("fish"):
            environment = {**os.environ, "HOME": folder, "PATH": f"{RUBATO.parent}:{os.environ['PATH']}"}
            check_cases("fish", lambda words: run(
                "fish", "--no-config", "-c", f"source '{SCRIPTS}/rubato.fish'; complete -C \"rubato {' '.join(w.replace(' ', chr(92) * 2 + ' ') for w in words)}\"",
                env=environment, cwd=folder))
        else:
            not_checked.append("fish")
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
