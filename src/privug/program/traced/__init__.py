"""The traced tier: source rewritten so that it runs on random variables, and what rewritten code calls."""
