"""How the command refuses: one line without a traceback, with the line of the user's file, and an exit code."""

import contextlib
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import click

import privug as pv

WRONG_QUESTION, UNDECIDED, INTERRUPTED = 2, 3, 130
UNDECIDED_ERRORS = (pv.NotConverged, pv.TooFewSamples, pv.OutOfTime)


class Refusal(click.ClickException):
    """Why there is no answer, in one line."""

    def __init__(self, message: str, exit_code: int = WRONG_QUESTION) -> None:
        super().__init__("; ".join(line.strip() for line in message.splitlines()))
        self.exit_code = exit_code  # type: ignore[misc]  # a class variable in click


def exit_code(error: type[pv.PrivugError]) -> int:
    """Return the exit code of an error: the question is wrong, or it could not be decided."""
    return UNDECIDED if issubclass(error, UNDECIDED_ERRORS) else WRONG_QUESTION


@contextlib.contextmanager
def reported(file: Path | None = None, *, secrets: bool = True) -> Iterator[None]:
    """Run what may be code of the user's: what it prints goes to standard error, its errors become one line.

    Without `secrets`, errors of the user's own code, which may name values, are told by their kind only.
    """
    with contextlib.redirect_stdout(sys.stderr), _short_warnings():
        try:
            yield
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except (click.ClickException, click.exceptions.Exit):
            raise
        except pv.PrivugError as error:
            raise Refusal(f"{_place(error, file)}{error}", exit_code(type(error))) from None
        except (Exception, SystemExit) as error:
            place = _place(error, file)
            if not place and not isinstance(error, MemoryError):
                raise  # an error of Privug's own: its traceback is needed
            told = f": {pv.PrivugError(_words(error))}" if secrets else "; --show-secrets shows what it says"
            raise Refusal(f"{place}{type(error).__name__}{told}") from None


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """Show a warning as one line."""
    before = warnings.formatwarning
    warnings.formatwarning = _one_line
    try:
        yield
    finally:
        warnings.formatwarning = before


def _one_line(message: Warning | str, *_: object, **__: object) -> str:
    return f"warning: {'; '.join(str(pv.PrivugError(str(message))).splitlines())}\n"


def _words(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return f"{error or 'there is too little memory'}; take fewer rows or --samples"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{error}; pip install it, or correct the name"
    return str(error.msg if isinstance(error, SyntaxError) else error)


def _place(error: BaseException, file: Path | None) -> str:
    """Return the file and the innermost of its lines that an error, or what caused it, went through."""
    if file is None:
        return ""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}, line {error.lineno}: "
    found: BaseException | None = error
    while found is not None:
        lines = [frame.lineno for frame in traceback.extract_tb(found.__traceback__) if frame.filename == str(file)]
        if lines:
            return f"{file}, line {lines[-1]}: "
        found = found.__cause__ or found.__context__
    return ""
