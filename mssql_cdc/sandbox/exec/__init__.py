"""Execution: syntax trees to closures and plans, statements, control of flow, procedures, sessions.

Uses engine/ and tsql/. Does not know the wire protocol, nor what the catalogue's views and procedures mean.
"""
