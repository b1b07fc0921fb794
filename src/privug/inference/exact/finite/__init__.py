"""Discrete programs: all states at once, sums over rows as roots of their own, or variable elimination."""
