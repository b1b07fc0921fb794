"""Where files are, as reports name them: relative to where the command runs, whatever the system."""

from pathlib import Path
from urllib.parse import quote

from privug.escaping import inert


def relative(path: Path) -> str:
    """Return a path relative to the working directory, with forward slashes; the whole path if it lies elsewhere."""
    whole, here = path.resolve(), Path.cwd().resolve()
    return inert((whole.relative_to(here) if whole.is_relative_to(here) else whole).as_posix())


def as_uri(path: Path) -> str:
    """Return the relative URI of a file below the working directory, or else its whole `file:` URI.

    >>> as_uri(Path("a folder/survey.py"))
    'a%20folder/survey.py'
    """
    whole, here = path.resolve(), Path.cwd().resolve()
    return quote(whole.relative_to(here).as_posix()) if whole.is_relative_to(here) else whole.as_uri()
