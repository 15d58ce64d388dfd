"""XML values: trees, parsing and writing, paths through them, changes in place, schema collections.

XQuery is limited to what the published sample databases use: paths of named steps with positions, string(), data(), and
the simple forms of modify(). Everything else is error 9335. What does not belong here: how T-SQL names methods, columns
and collections (the executor).
"""
