"""The contracts of signal channels and actions (SIG-01, SPI-06, SPI-07). Values and protocols, no code.

A channel delivers signals; `signals.py` applies and records them. Built-in channels are `source`
(`signal_channels.py`), `file` (`file_channel.py`) and `kafka` (`kafka_channel.py`). A user's channel is an entry point
in the group `mssql_cdc.signal_channels`, whose name is listed in `signal.enabled.channels`. An action implements
another type of signal; `signal_actions.py` calls the actions of users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalRecord:
    """A signal as a channel delivers it.

    Attributes:
        id: Its id; need not be unique.
        type: What is requested, such as `execute-snapshot`.
        data: JSON text, or None.
        position: Where it was in the channel; shown, and distinguishes signals with the same id.
        problem: Why it cannot be read: it is recorded as ignored, with this reason.
    """

    id: str
    type: str
    data: str | None = None
    position: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Arrived:
    """Signals of one channel, in order; `bookmark` (JSON) is where the next read begins."""

    signals: Sequence[SignalRecord]
    bookmark: Any


class SignalChannel(Protocol):
    """A channel that can be read again from a bookmark.

    Debezium's `SignalChannelReader`: `init` is the constructor, which gets the keyword argument `properties`; `reset`
    and `read` are one method here. A method `close` is called at the end, if there is one. The lake keeps the bookmark
    in the commit that records the signals, so that a run that dies in between neither loses a signal nor repeats one.
    """

    def read(self, bookmark: Any) -> Arrived | None:
        """Return the signals after the bookmark; None if there are none.

        A bookmark that is passed in is in the lake together with the signals before it: the channel may forget them.

        Args:
            bookmark: What the last recorded `Arrived` of this channel held; None if there is none yet.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalPayload:
    """A signal as an action gets it; `data` is its JSON object, empty if it has none.

    Attributes:
        id: Its id.
        type: What is requested: the name of the action.
        data: What it says.
        channel: The channel that delivered it.
        position: Where it was there.
        catalog: The database.
    """

    id: str
    type: str
    data: Mapping[str, Any]
    channel: str
    position: str | None
    catalog: str


class SignalAction(Protocol):
    """What a type of signal does, besides the built-in ones (SPI-07).

    An entry point in the group `mssql_cdc.signal_actions`; its name is the type. The constructor gets the keyword
    argument `properties`, the connector's configuration.
    """

    def arrived(self, payload: SignalPayload) -> bool:
        """Act, and return whether it was done.

        The signal is already in the lake. If a run dies before the result is there too, the next run calls again.

        Args:
            payload: The signal.
        """
        ...
