"""What a traced program gets in the place of a data frame."""
