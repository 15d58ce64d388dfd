"""Execution: syntax trees to closures and plans, statements, control of flow, procedures, sessions.

Uses engine/ and tsql/. Does not know the wire protocol, nor what the catalogue's views and procedures mean. The layers
and the way of a statement through them are described in docs/architecture.md.
"""
