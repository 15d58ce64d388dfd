"""Scalar functions which read the catalogue: objects, properties of server and database, principals."""

from mssql_cdc.sandbox.catalog.functions import objects, places, principals, properties

FUNCTIONS = (*objects.FUNCTIONS, *places.FUNCTIONS, *principals.FUNCTIONS, *properties.FUNCTIONS)
