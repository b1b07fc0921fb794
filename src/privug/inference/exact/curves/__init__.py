"""Densities on the line: functions of them, their sums, and panels on which they are polynomials."""
