"""Everything that imports Dagster: assets, sensors, jobs, resources of a connector, made by `build_definitions`.

What a range or a snapshot does stands in `run/`; here their results become materializations,
metadata and checks, and nothing else.
"""
