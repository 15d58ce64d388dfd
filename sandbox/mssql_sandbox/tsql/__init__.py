"""The T-SQL language: tokens, syntax tree, parser, text rendering. Independent of engine, session and catalogue."""
