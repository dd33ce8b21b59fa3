"""Requests over HTTP. The plugin requests the addresses in ``toolgate-plugin.toml``: ``[[wants.http]]``.

The operator decides which addresses a plugin may reach. The host adds an ``Idempotency-Key`` to every request that may
change something. Redirects are not followed: a 3xx status is an ordinary response. For a key or token, send the
placeholder of ``config.get``. ``urllib.request``, ``http.client`` and the packages that use them (requests, httpx) need
sockets, which a component does not have.
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
    """The URL, a header or the body is invalid."""


class RequestDenied(Failed):
    """The host does not allow the request. The call's log names the missing grant (``toolgate logs``)."""


class Unreachable(Unavailable):
    """The request was tried, but got no response."""


class StatusFailed(Failed):
    """The server refused. Trying again the same way will not help."""


class StatusUnavailable(Unavailable):
    """The server refused (429 or 5xx). Trying again later may help."""


@dataclass(frozen=True)
class Request:
    """A request to send."""

    method: str
    """The method, in upper case."""
    url: str
    """The whole URL, with its query."""
    headers: tuple[tuple[str, str], ...] = ()
    """The headers, in order."""
    body: bytes | None = None
    """The body, if there is one."""
    timeout: float | None = None
    """The most seconds to connect, to the start of the response, and between its parts, each."""


@dataclass(frozen=True)
class Response:
    """A response with any status."""

    status: int
    """The status."""
    headers: tuple[tuple[str, str], ...] = ()
    """In order, with names in lower case."""
    body: bytes = field(default=b"", repr=False)
    """The body."""

    def header(self, name: str, default: str | None = None) -> str | None:
        """The first header with this name."""
        return next((value for known, value in self.headers if known == name.lower()), default)

    @property
    def ok(self) -> bool:
        """Whether the status is a success (2xx)."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body as text. Invalid UTF-8 is replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Reads the body as JSON.

        Raises:
            Failed: The body is not JSON.
        """
        try:
            return _json.loads(self.body)
        except ValueError as error:
            raise Failed(f"the server's answer is not JSON: {error}") from None

    def raise_for_status(self) -> Response:
        """Returns the response if it succeeded.

        Raises:
            StatusUnavailable: The status is 429 or 5xx.
            StatusFailed: It is another status outside of 2xx.
        """
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
        headers: Headers by name.
        body: Bytes, or a text to send as UTF-8.
        json: A value to send as JSON, instead of ``body``.
        timeout: Seconds; see ``Request``.

    Raises:
        RequestInvalid: The URL, a header or the body is invalid, or there are ``body`` and ``json``.
        RequestDenied: The host does not allow the request. The call's log names the missing grant (``toolgate logs``).
        Unreachable: There is no response, or it breaks off.
        Failed: The value for ``json`` has no form in JSON.
        RuntimeError: The component was built without ``[[wants.http]]``.
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
    """A GET request; the options are those of ``request``.

    Raises:
        ToolError: As ``request``.
    """
    return request("GET", url, **options)


def post(url: str, **options: Any) -> Response:
    """A POST request; the options are those of ``request``.

    Raises:
        ToolError: As ``request``.
    """
    return request("POST", url, **options)
