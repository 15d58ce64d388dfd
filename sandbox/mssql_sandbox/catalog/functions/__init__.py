"""Scalar functions that read the catalogue: objects, properties of server and database, principals."""

from mssql_sandbox.catalog.functions import hexadecimal, objects, places, principals, properties

SYSTEM_FUNCTIONS = hexadecimal.FUNCTIONS
"""Functions of the schema `sys` that are also available as `dbo` functions in master."""
FUNCTIONS = (*objects.FUNCTIONS, *places.FUNCTIONS, *principals.FUNCTIONS, *properties.FUNCTIONS)
