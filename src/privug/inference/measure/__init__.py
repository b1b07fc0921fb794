"""Measures on the line: densities, atoms, maps of them and their sums."""
