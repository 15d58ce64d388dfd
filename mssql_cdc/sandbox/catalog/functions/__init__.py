"""Scalar functions which read the catalogue: objects, properties of server and database, principals."""

from mssql_cdc.sandbox.catalog.functions import objects, principals, properties

FUNCTIONS = (*objects.FUNCTIONS, *principals.FUNCTIONS, *properties.FUNCTIONS)
