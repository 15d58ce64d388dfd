"""What to do next for one database, decided from facts: values in, a decision out. No source, no lake, no clock."""
