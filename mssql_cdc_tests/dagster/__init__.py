"""What Dagster shows and does: definitions, sensor, runs, launchpad, a whole instance."""
