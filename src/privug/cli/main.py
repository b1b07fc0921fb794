"""The `privug` command: its subcommands by name, each imported when it is called."""

import os
from importlib import import_module
from typing import Any

import click

import privug as pv
from privug.cli.refusal import Refusal
from privug.cli.terminal import never_fail_to_show, quiet_when_unread

# What a command does, as the list of commands says it. Nothing but this is known of a command until it is called, so
# that `privug --help` is there at once.
COMMANDS = {
    "analyze": "What do the attackers of a Python file, or of a SQL query, learn?",
    "audit": "Does a mechanism keep its promise of differential privacy?",
    "check": "Do the policies of a Python file, or of a SQL query, hold?",
    "compare": "Set the attacks of a Python file side by side.",
    "demo": "Analyse the running example for two attackers.",
    "doctor": "Say what is installed, and whether it works.",
    "estimate": "Measure the leak in a file of recorded secrets and outputs.",
    "explain": "Show line by line how a program is lifted to distributions.",
    "explore": "Move what attackers know and see, on a page of this machine.",
    "monitor": "Which queries of a log may be answered, after those before?",
    "new": "Write a commented file to start from.",
    "reproduce": "Reproduce the tables and figures of the paper.",
    "sweep": "Run an attack for many values of its parameters.",
    "table": "What do the suppressed cells of published tables give away?",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called; their help in one line is known before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"privug.cli.{cmd_name}"), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with quiet_when_unread():
                return super().invoke(ctx)
        except click.UsageError as error:  # in one line, without the synopsis
            path = error.ctx.command_path if error.ctx is not None else ctx.command_path
            raise Refusal(f"{error.format_message().rstrip('.')}; see {path} --help") from None

    # Whatever click does may print: help while it reads arguments, errors at the end.
    def main(self, *args: Any, **extra: Any) -> Any:
        with quiet_when_unread():
            return super().main(*args, **extra)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with quiet_when_unread():
            return super().make_context(*args, **extra)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(pv.__version__, prog_name="privug")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Privug: what does an attacker learn from the output of your program?

    \b
    Examples:
      privug demo                    the running example
      privug new rows survey.py      a file to start from
      privug analyze survey.py       what its attackers learn
      privug COMMAND --help          examples of every command

    Exit codes: 0 fine, 1 a policy or a promise is broken, 2 the question is wrong, 3 it could not be decided.
    """
    never_fail_to_show()
    if os.environ.get("NO_COLOR"):
        ctx.color = False


if __name__ == "__main__":
    main()
