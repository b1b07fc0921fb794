"""The native tier: programs compiled with Numba. Imported only when it is used: the compiler takes its time."""
