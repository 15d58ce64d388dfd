"""Calls: arguments and parameters, EXECUTE, modules and text that are run, prepared statements, remote calls."""
