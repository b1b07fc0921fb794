"""Exact answers that compose: rows cut into cells, cells tallied over rows, observations pulled back."""
