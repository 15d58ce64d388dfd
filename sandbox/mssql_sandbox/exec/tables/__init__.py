"""Creating and filling tables: definitions, names of constraints, complete rows, private tables."""
