"""Step 4: what the attacker believes after the observation."""
