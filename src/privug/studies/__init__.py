"""Many attacks at once: sweeps over parameters, calibration, comparisons of attackers and programs."""
