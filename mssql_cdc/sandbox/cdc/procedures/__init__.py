"""The stored procedures of change data capture, by family; each module has a tuple `PROCEDURES`."""
