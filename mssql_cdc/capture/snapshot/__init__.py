"""Snapshots: when one is due and how it is cut up (`plan`, pure), and reading it into the lake (`capture`)."""
