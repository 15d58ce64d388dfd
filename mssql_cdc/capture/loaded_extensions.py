"""The extensions that a process has loaded for one database: each is created once, when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mssql_cdc.config import Connector
from mssql_cdc.config.extension_names import ExtensionGroup, ExtensionProperties
from mssql_cdc.extensions import load_extension

T = TypeVar("T")


@dataclass(slots=True)
class LoadedExtensions:
    """The objects that entry points have created, by group and name."""

    _made: dict[tuple[ExtensionGroup, str], Any] = field(default_factory=dict[tuple[ExtensionGroup, str], Any])
    _others: dict[str, Any] = field(default_factory=dict[str, Any])

    def get(
        self, connector: Connector, group: ExtensionGroup, name: str, *, setting: str, methods: Iterable[str]
    ) -> Any:
        """The object of an entry point, which is created with the keyword argument `properties`.

        Args:
            connector: The configuration that it gets.
            group: The group of entry points.
            name: The name in this group.
            setting: The property that names it, for error messages.
            methods: The methods that it must have.

        Raises:
            ConfigurationError: It is not installed, cannot be loaded, or lacks a method.
        """

        def load() -> Any:
            return load_extension(
                group,
                name,
                setting=setting,
                methods=methods,
                arguments={"properties": ExtensionProperties(connector.properties)},
                any_case=group.any_case,
            )

        return self.kept(group, name, load)

    def kept(self, group: ExtensionGroup, name: str, make: Callable[[], Any]) -> Any:
        """Something that is closed like the object of an entry point: a built-in one with its own connection.

        Args:
            group: The group that it belongs to.
            name: Its name.
            make: Creates it the first time.
        """
        if (group, name) not in self._made:
            self._made[group, name] = make()
        return self._made[group, name]

    def once(self, purpose: str, make: Callable[[], T]) -> T:
        """What another package creates from entry points for this purpose.

        Args:
            purpose: What it is for.
            make: Creates it the first time.
        """
        if purpose not in self._others:
            self._others[purpose] = make()
        return self._others[purpose]

    def close(self, log: Callable[[str], None]) -> None:
        """Close the objects that can be closed; whatever is needed afterwards is created again.

        Args:
            log: Receives what they raise.
        """
        made, self._made = self._made, {}
        for (_, name), one in made.items():
            close = getattr(one, "close", None)
            if not callable(close):
                continue
            try:
                close()
            except Exception as error:  # noqa: BLE001 - whatever an extension raises, the others are closed
                log(f"the entry point {name} cannot be closed: {type(error).__name__}: {error}")
