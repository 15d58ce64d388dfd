"""API server cursors, which drivers open with sp_cursoropen and read block by block with sp_cursorfetch.

`rows` finds and re-reads rows, `cursor` keeps the position of one cursor, `changes` writes through it, `procedures` is
the sp_cursor family. T-SQL cursors (DECLARE CURSOR) belong to statements.cursors.
"""
