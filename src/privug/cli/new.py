"""`privug new`: a commented file to start from."""

from pathlib import Path

import click

from privug.cli import options
from privug.cli.refusal import Refusal
from privug.output import as_json as to_json

STARTERS = Path(__file__).with_name("starters")
KINDS = {
    "rows": "a program on a list of rows, and two attackers",
    "frame": "a program on a pandas data frame, and a prior from data",
    "black-box": "a command in any language that reads and writes JSON lines",
}


@click.command()
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.argument("file", type=options.written, required=False)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@options.as_json
def new(kind: str, file: Path | None, force: bool, as_json: bool) -> None:
    """Write a commented FILE to start from; it runs as it is written.

    \b
    KIND is one of
      rows       a program on a list of rows, and two attackers
      frame      a program on a pandas data frame, and a prior from data
      black-box  a command in any language that reads and writes JSON lines

    \b
    Examples:
      privug new rows survey.py
      privug new frame
      privug analyze survey.py
    """
    target = file or Path(f"{kind.replace('-', '_')}_attack.py")
    if target.exists() and not force:
        raise Refusal(f"{target} is there already; name another file, or write --force")
    try:
        target.write_text((STARTERS / f"{kind.replace('-', '_')}.txt").read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise Refusal(f"{target} cannot be written: {error.strerror}") from None
    next_step = f"privug analyze {target}"
    told = f"wrote {target}: {KINDS[kind]}\nnext:  {next_step}"
    click.echo(to_json({"file": str(target), "kind": kind, "next": next_step}) if as_json else told)
