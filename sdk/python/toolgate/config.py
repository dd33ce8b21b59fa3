"""The operator's configuration for the plugin. The plugin requests it in ``toolgate-plugin.toml``: ``[wants.config]``.

The value of a secret is a placeholder. Put it into a request of ``toolgate.http`` at the place of the secret. The host
replaces it there if the operator granted that. It has no other use.
"""

from __future__ import annotations

from . import _host
from .failure import Failed, Unavailable


class ConfigUnavailable(Unavailable):
    """The host could not read the configuration."""


def get(name: str, default: str | None = None) -> str | None:
    """The value with this name, or the default if the operator configured none.

    Raises:
        ConfigUnavailable: The host could not read the configuration.
        RuntimeError: The component was built without ``[wants.config]``.
    """
    value = _host.current().config(name)
    return default if value is None else value


def required(name: str) -> str:
    """The value with this name, if the tool needs one.

    Raises:
        Failed: The operator configured none. The message has the name.
        ConfigUnavailable: The host could not read the configuration.
        RuntimeError: The component was built without ``[wants.config]``.
    """
    value = _host.current().config(name)
    if value is None:
        raise Failed(f"the operator has not configured `{name}` for this plugin")
    return value


def get_all() -> dict[str, str]:
    """Every configured value, by name.

    Raises:
        ConfigUnavailable: The host could not read the configuration.
        RuntimeError: The component was built without ``[wants.config]``.
    """
    return _host.current().config_all()
