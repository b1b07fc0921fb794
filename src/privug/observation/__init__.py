"""Step 3: what the attacker sees of the output."""
