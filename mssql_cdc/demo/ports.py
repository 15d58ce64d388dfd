"""Ports of this machine for children that must be given one before they start.

A child that can choose its port itself does so, and reports it: nothing else is safe from others who choose.
"""

from __future__ import annotations

import random
import socket

BELOW_OUTGOING = range(20_000, 32_000)
"""Below the ports that Linux (from 32,768) and other systems (from 49,152) assign to outgoing connections."""


def free_port() -> int:
    """A port on which nobody listens, and which no outgoing connection is assigned before the child has it.

    A port that the kernel chose may be assigned to a connection in the meantime: CI lost an object store to that.

    Raises:
        OSError: None of a hundred is free.
    """
    for port in random.sample(BELOW_OUTGOING, 100):
        if not is_taken(port):
            return port
    raise OSError(f"none of 100 ports between {BELOW_OUTGOING.start} and {BELOW_OUTGOING.stop} is free")


def is_taken(port: int) -> bool:
    """Whether this port of 127.0.0.1 is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
