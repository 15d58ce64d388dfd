"""Sources of changes: the protocol, its values, and one package per kind of database."""
