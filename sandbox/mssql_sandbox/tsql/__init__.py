"""The T-SQL language: tokens, syntax tree, parser, text rendering. Knows no engine, no session, no names."""
