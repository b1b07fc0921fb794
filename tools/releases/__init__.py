"""What is known of typical releases without Privug; `oracles_of_releases.py` runs it."""
