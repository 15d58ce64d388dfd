"""Tables of expressions, and what SQL Server is documented to answer."""
