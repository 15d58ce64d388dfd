"""Calls: arguments and parameters, EXECUTE, running modules and text, prepared statements, remote calls."""
