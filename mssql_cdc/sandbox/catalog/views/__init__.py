"""System views by family; each module has a tuple `VIEWS`."""
