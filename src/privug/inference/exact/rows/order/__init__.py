"""Order statistics of rows, by counting."""
