"""`python -m privug`: the command line."""

from privug.cli.main import main

if __name__ == "__main__":
    main(prog_name="python -m privug")
