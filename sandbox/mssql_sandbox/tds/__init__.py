"""TDS 7.4, the protocol between SQL Server's clients and servers (MS-TDS).

Packets, pre-login, TLS, login, requests, token streams and the value codecs belong here, running statements does not:
requests go to a `Session`, whose events come back as tokens.
"""
