"""Step 1: what the attacker knows, as distributions over the program's inputs."""
