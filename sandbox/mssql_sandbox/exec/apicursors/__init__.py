"""API server cursors: what drivers open with sp_cursoropen and read block by block with sp_cursorfetch.

`rows` finds and re-reads rows, `cursor` keeps one cursor's place, `changes` writes through it, `procedures` is the
sp_cursor family. Cursors of T-SQL itself (DECLARE CURSOR) are statements.cursors.
"""
