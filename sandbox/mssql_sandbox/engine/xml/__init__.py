"""XML values: trees, parsing and writing, XQuery as far as SQL Server has it, changes in place, schema collections.

What does not belong here: how T-SQL names methods, columns and collections (the executor), and FOR XML.
"""
