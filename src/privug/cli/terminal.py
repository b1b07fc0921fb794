"""What terminals can show: plainer characters where some are missing, and what is being done while nothing is there."""

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Iterator

import click

PLAINER = {"─": "-", "±": "+-", "∞": "infinite"}
HANDLER = "privug.plainer"
UNREAD = 141
"""The exit code if nobody reads what is printed: that of tools which SIGPIPE ends."""
ERASE_LINE = "\r\x1b[2K"


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(PLAINER.get(c, c.encode("ascii", "backslashreplace").decode()) for c in wrong), error.end


def never_fail_to_show() -> None:
    """Let standard output take any text, whatever its encoding."""
    codecs.register_error(HANDLER, _plainer)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


@contextlib.contextmanager
def quiet_when_unread() -> Iterator[None]:
    """End without a word where nobody reads what is printed any more, as in `| head`.

    The signal SIGPIPE is left alone: whoever writes to an external program that is dead needs the error.
    """
    try:
        yield
    except BrokenPipeError:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BrokenPipeError:  # what is left in the buffer is written when Python ends
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise SystemExit(UNREAD) from None


@contextlib.contextmanager
def doing(what: str) -> Iterator[None]:
    """Say on a terminal what is being done, at once, and wipe it away afterwards; say nothing elsewhere."""
    shown = sys.stderr.isatty()
    if shown:
        click.echo(f"{what} ...", nl=False, err=True)
    try:
        yield
    finally:
        if shown:
            click.echo(ERASE_LINE, nl=False, err=True)
