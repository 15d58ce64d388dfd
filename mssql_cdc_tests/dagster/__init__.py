"""Tests of the Dagster integration: definitions, sensor, runs, launchpad, a whole instance."""
