"""Step 2: the program, lifted to work on distributions."""
