"""Compiling expressions to closures: one function per kind of node, including functions and subqueries."""
