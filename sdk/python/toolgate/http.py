"""Requests over HTTP. The plugin asks for what it wants to reach in ``toolgate-plugin.toml``: ``[[wants.http]]``.

The operator decides what a plugin may reach, and the host adds an ``Idempotency-Key`` to every request that changes
something. Redirects are not followed: a 3xx is an answer like any other. Where a key or token belongs, put the placeholder
that ``config.get`` gives for the secret. ``urllib.request``, ``http.client`` and what is built on them (requests, httpx)
need sockets, which a component does not have.
"""

from __future__ import annotations

import json as _json
from dataclasses import dataclass, field
from typing import Any, Mapping
from urllib.parse import urlencode

from . import _host
from ._encode import to_json
from .failure import Failed, Unavailable


class RequestInvalid(Failed):
    """The URL, a header or the body cannot be sent."""


class RequestDenied(Failed):
    """The host does not allow it; the call's log says what would have to be granted."""


class Unreachable(Unavailable):
    """It was sent, or tried, and got no response."""


class StatusFailed(Failed):
    """The server said no, and trying again in the same way will not help."""


class StatusUnavailable(Unavailable):
    """The server said no (429 or 5xx), and trying again later may help."""


@dataclass(frozen=True)
class Request:
    """A request as it is sent."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    timeout: float | None = None
    """Seconds until the connection stands, until the answer begins, and between its pieces, each."""


@dataclass(frozen=True)
class Response:
    """A response with any status."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    """In order, with names in lower case."""
    body: bytes = field(default=b"", repr=False)

    def header(self, name: str, default: str | None = None) -> str | None:
        """The first header of this name."""
        return next((value for known, value in self.headers if known == name.lower()), default)

    @property
    def ok(self) -> bool:
        """Whether the status says that the request succeeded (2xx)."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body as text, with what is not UTF-8 replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body, read as JSON; the call fails where it is none."""
        try:
            return _json.loads(self.body)
        except ValueError as error:
            raise Failed(f"the server's answer is not JSON: {error}") from None

    def raise_for_status(self) -> Response:
        """Itself, if the request succeeded; otherwise the failure that fits the status."""
        if self.ok:
            return self
        helps = self.status == 429 or self.status >= 500
        raise (StatusUnavailable if helps else StatusFailed)(f"the server answered with status {self.status}")


def request(
    method: str,
    url: str,
    *,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes | str | None = None,
    json: Any = None,
    timeout: float | None = None,
) -> Response:
    """Sends a request and reads the whole response, with any status.

    Args:
        method: GET, POST and so on, in upper case.
        url: The whole URL, with its scheme.
        params: A query to add to it.
        headers: By name.
        body: Bytes, or a text that is sent as UTF-8.
        json: A value to send as a body of JSON, in the place of ``body``.
        timeout: Seconds; see ``Request``.
    """
    fields = dict(headers or {})
    if json is not None:
        if body is not None:
            raise RequestInvalid("a request has either `body` or `json`")
        body = to_json(json)
        if not any(name.lower() == "content-type" for name in fields):
            fields["content-type"] = "application/json"
    if params:
        url += ("&" if "?" in url else "?") + urlencode(params, doseq=True)
    for name, value in fields.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise RequestInvalid(f"the header {name!r} is {value!r}: names and values are texts")
        if any(sign in f"{name}{value}" for sign in "\r\n\0"):
            raise RequestInvalid(f"the header {name!r} has a line break")
    content = body.encode() if isinstance(body, str) else body
    return _host.current().send(Request(method, url, tuple(fields.items()), content, timeout))


def get(url: str, **options: Any) -> Response:
    """A GET request; the options are those of ``request``."""
    return request("GET", url, **options)


def post(url: str, **options: Any) -> Response:
    """A POST request; the options are those of ``request``."""
    return request("POST", url, **options)
