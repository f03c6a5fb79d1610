"""The command `rubato` of a wheel: becomes the program that lies in the package. Imports nothing else, since every command waits for it."""

from __future__ import annotations

import os
import sys
from typing import NoReturn, Optional


def bundled() -> Optional[str]:
    """The program inside this package; None where it was installed without one (cmake --install, .deb)."""
    import rubato

    for folder in rubato.__path__:
        path = os.path.join(folder, "bin", "rubato")
        if os.access(path, os.X_OK):
            return path
    return None


def main() -> NoReturn:
    path = bundled()
    if path is None:
        sys.exit("error: this package has no program in it\n  hint: pip install rubato-dvfs, or pip install . in a clone")
    os.environ["RUBATO_PYTHON"] = sys.executable  # which has the package, whatever python3 is on the PATH
    os.execv(path, ["rubato", *sys.argv[1:]])
