"""What the operator configured for the plugin. The plugin asks for it in ``toolgate-plugin.toml``: ``[wants.config]``.

The value of a secret is a placeholder. Put it where the secret belongs in a request of ``toolgate.http`` and the host sends
the secret in its place, where the operator granted that; nothing else can be done with it.
"""

from __future__ import annotations

from . import _host
from .failure import Failed, Unavailable


class ConfigUnavailable(Unavailable):
    """The host could not look it up."""


def get(name: str, default: str | None = None) -> str | None:
    """The value of this name, or the default where the operator gave none."""
    value = _host.current().config(name)
    return default if value is None else value


def required(name: str) -> str:
    """The value of this name, which the tool cannot do without: the call fails where the operator gave none."""
    value = _host.current().config(name)
    if value is None:
        raise Failed(f"the operator has not configured `{name}` for this plugin")
    return value


def get_all() -> dict[str, str]:
    """Every value that the operator gave, by name."""
    return _host.current().config_all()
