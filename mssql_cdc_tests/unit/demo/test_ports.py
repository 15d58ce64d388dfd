"""Ports for children that must be told one."""

from __future__ import annotations

import socket

from mssql_cdc.demo.ports import BELOW_OUTGOING, free_port, is_taken


def test_a_port_is_taken_from_the_moment_somebody_has_it():
    with socket.create_server(("127.0.0.1", free_port())) as server:
        port = server.getsockname()[1]
        assert is_taken(port)
    assert not is_taken(port)


def test_a_port_is_taken_by_a_connection_alike():
    """Nobody listens there, and yet no child can: that was taken for a free one."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.bind(("127.0.0.1", free_port()))
        client.connect(server.getsockname())
        assert is_taken(client.getsockname()[1])


def test_a_free_port_is_none_that_outgoing_connections_are_given():
    assert {free_port() in BELOW_OUTGOING for _ in range(20)} == {True}
