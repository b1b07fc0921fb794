"""Monitoring: queries on the same data one after the other, each answered only if the policy stays kept."""
