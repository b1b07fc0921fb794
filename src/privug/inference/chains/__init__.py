"""Engines that run Markov chains: the model graph handed to PyMC or NumPyro, and what their draws are worth."""
