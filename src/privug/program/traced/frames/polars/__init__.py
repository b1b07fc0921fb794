"""The stand-in of polars: frames, columns and expressions in terms of random variables."""
