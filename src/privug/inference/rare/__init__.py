"""Rare observations: a search through nested events, by many populations of samples."""
