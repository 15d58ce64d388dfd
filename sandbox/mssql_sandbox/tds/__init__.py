"""TDS 7.4: what a SQL Server client and a server say to each other over a socket (MS-TDS).

Here belong packets, pre-login, TLS, login, requests, token streams and the value codecs. What a statement
means does not: requests go to a `Session`, whose events come back as tokens.
"""
