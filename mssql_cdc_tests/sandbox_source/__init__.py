"""Tests of the source package against the stand-in server, through the real ODBC driver."""
