"""Weighted sums of normal quantities, conditioned by projection."""
