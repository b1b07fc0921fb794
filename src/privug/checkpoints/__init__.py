"""Checkpoints: what a long run has found, in a file that runs no code when it is read, bound to its question."""
