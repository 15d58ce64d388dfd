"""The source room against the stand-in server, through the real ODBC driver."""
