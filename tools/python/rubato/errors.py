"""Errors for users, with the exit statuses of rubato."""

from __future__ import annotations


class RubatoError(Exception):
    """A message that says where, what was found and what was expected; `hint` says what to try."""

    status = 70

    def __init__(self, message: str, hint: str = ""):
        super().__init__(message)
        self.hint = hint
        if hint and hasattr(self, "add_note"):  # from Python 3.11 on, tracebacks and notebooks show it
            self.add_note(f"hint: {hint}")


class UsageError(RubatoError):
    """The call, or the command line, asks for what there is not."""

    status = 2


class DataError(RubatoError):
    """A file does not hold what it should."""

    status = 3


class IoError(RubatoError):
    """The machine refuses: no driver, no module, no rights, GPU in use, file not writable."""

    status = 4


class Unreachable(IoError):
    """Nobody answers at the moment, though somebody did before: zeusd is restarted."""


class Terminated(BaseException):
    """A signal asked the process to end; like KeyboardInterrupt, no handler of errors catches it."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number
