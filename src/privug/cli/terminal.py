"""What terminals can show: in an encoding without some of our characters, plainer ones stand in for them."""

import codecs
import io
import sys

PLAINER = {"─": "-", "±": "+-", "∞": "infinite"}
HANDLER = "privug.plainer"


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(PLAINER.get(c, c.encode("ascii", "backslashreplace").decode()) for c in wrong), error.end


def never_fail_to_show() -> None:
    """Let standard output take any text, whatever its encoding."""
    codecs.register_error(HANDLER, _plainer)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=HANDLER)
