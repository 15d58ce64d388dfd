"""Tables as statements make and fill them: definitions, names of constraints, complete rows, private tables."""
