"""Everything that imports Dagster: assets, sensors, jobs and resources of a connector, built by `build_definitions`.

`run/` implements ranges and snapshots. This package only turns their results into materializations, metadata and
checks.
"""
