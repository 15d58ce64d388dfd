"""System procedures that change definitions: `own` is their table."""
