"""How the command refuses: a message of one line without a traceback, and exit code 2."""

import click

import privug as pv


class Refusal(click.ClickException):
    """An error of the user's making: a message without a traceback, and exit code 2."""

    exit_code = 2


class Reported:
    """Turns Privug's errors into a message of one line and exit code 2, without a traceback."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pv.PrivugError):
            raise Refusal("; ".join(line.strip() for line in str(error).splitlines())) from None
