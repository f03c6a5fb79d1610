"""Lines to type at the end of --help."""

from __future__ import annotations

import argparse
from typing import Any, Mapping, Sequence


def add_examples(commands: Any, examples: Mapping[str, Sequence[str]]) -> None:
    """@param commands  of add_subparsers; @param examples  lines of each of them"""
    for name, lines in examples.items():
        command = commands.choices[name]
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        command.epilog = "\n".join(["Examples", *(f"  {line}" for line in lines)])
