"""Expressions of the syntax tree to closures: one function per kind of node, functions and subqueries among them."""
