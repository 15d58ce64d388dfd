"""Execution: syntax trees to closures and plans, statements, control of flow, procedures, sessions.

Uses engine/ and tsql/; knows neither the wire protocol nor the catalogue's views and procedures. docs/architecture.md
describes the layers and the path of a statement through them.
"""
