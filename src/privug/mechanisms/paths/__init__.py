"""Programs that compare noisy numbers, path by path."""
