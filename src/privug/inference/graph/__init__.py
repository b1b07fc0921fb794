"""Analyses of a model graph that every engine asks."""
