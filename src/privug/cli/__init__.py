"""The command line: arguments in, public names called, text out."""
