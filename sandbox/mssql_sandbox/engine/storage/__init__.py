"""Storage: server, databases, schemas, tables, indexes and constraints, with rows in versions.

What does not belong here: SQL text, name resolution of statements, system views.
"""
