"""Requests of wasi:http, through the bindings of the interfaces `types` and `outgoing-handler`."""

from __future__ import annotations

from typing import Any

from componentize_py_types import Err, Ok

from .http import Request, RequestDenied, RequestInvalid, Response, Unreachable

_PIECE = 4096
"""The most bytes of one write, as the interface allows."""
_READ = 65536
_DENIED = ("HttpRequestDenied", "DestinationIpProhibited")
_INVALID = ("HttpRequestUriInvalid", "HttpRequestMethodInvalid")


def send(types: Any, handler: Any, streams: Any, request: Request) -> Response:
    """Sends a request and reads the whole response."""
    outgoing = _outgoing(types, request)
    body = outgoing.body() if request.body is not None else None
    try:
        pending = handler.handle(outgoing, _options(types, request.timeout))
    except Err as error:
        raise _known(error.value) from None
    if body is not None:
        _write(types, body, request.body or b"")
    with pending.subscribe() as ready:
        ready.block()
    answer = pending.get()
    while isinstance(answer, Ok):
        answer = answer.value
    if answer is None or isinstance(answer, Err):
        raise _known(answer.value) if answer else Unreachable("the request got no response")
    return _read(types, streams, answer)


def _outgoing(types: Any, request: Request) -> Any:
    scheme, separator, rest = request.url.partition("://")
    if not separator:
        raise RequestInvalid(f"the URL {request.url!r} has no scheme")
    rest = rest.split("#")[0]
    end = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    authority, path = rest[:end], rest[end:]
    fields, headers = types.Fields(), request.headers
    if request.body is not None and not any(name.lower() == "content-length" for name, _ in headers):
        # Sends the length, because not every server accepts chunked bodies.
        headers += (("content-length", str(len(request.body))),)
    for name, value in headers:
        try:
            fields.append(name, value.encode())
        except Err as error:
            raise RequestInvalid(f"the header {name!r} cannot be sent: {_case(error.value)}") from None
    outgoing = types.OutgoingRequest(fields)
    known = {"http": types.Scheme_Http, "https": types.Scheme_Https}
    steps = (
        ("method", outgoing.set_method, _method(types, request.method)),
        ("scheme", outgoing.set_scheme, known[scheme]() if scheme in known else types.Scheme_Other(scheme)),
        ("host", outgoing.set_authority, authority),
        ("path", outgoing.set_path_with_query, path if path.startswith("/") else f"/{path}"),
    )
    for what, put, value in steps:
        try:
            put(value)
        except Err:
            raise RequestInvalid(f"the {what} of {request.method} {request.url} cannot be sent") from None
    return outgoing


def _method(types: Any, name: str) -> Any:
    known = getattr(types, f"Method_{name.capitalize()}", None) if name.isupper() else None
    return known() if known and name != "OTHER" else types.Method_Other(name)


def _options(types: Any, timeout: float | None) -> Any:
    if timeout is None:
        return None
    options, nanoseconds = types.RequestOptions(), max(1, int(timeout * 1_000_000_000))
    options.set_connect_timeout(nanoseconds)
    options.set_first_byte_timeout(nanoseconds)
    options.set_between_bytes_timeout(nanoseconds)
    return options


def _write(types: Any, body: Any, content: bytes) -> None:
    """Writes the body. A server may respond before it has read everything. Its response is then more useful."""
    try:
        with body.write() as stream:
            for at in range(0, len(content), _PIECE):
                stream.blocking_write_and_flush(content[at : at + _PIECE])
        types.OutgoingBody.finish(body, None)
    except Err:
        pass


def _read(types: Any, streams: Any, answer: Any) -> Response:
    with answer.headers() as fields:
        headers = tuple((name.lower(), value.decode("utf-8", "replace")) for name, value in fields.entries())
    status, pieces = answer.status(), []
    body = answer.consume()
    with body.stream() as stream:
        while True:
            try:
                pieces.append(stream.blocking_read(_READ))
            except Err as error:
                if isinstance(error.value, streams.StreamError_Closed):
                    break
                raise Unreachable(f"the response broke off: {error.value.value.to_debug_string()}") from None
    types.IncomingBody.finish(body)
    return Response(status, headers, b"".join(pieces))


def _case(value: Any) -> str:
    """The case of a variant, as the interface spells it: `HTTP-request-denied`."""
    return type(value).__name__.rpartition("_")[2]


def _known(error: Any) -> Exception:
    case = _case(error)
    if case in _DENIED:
        return RequestDenied("the host does not allow the request; the call's log names the missing grant (toolgate logs)")
    if case in _INVALID:
        return RequestInvalid(f"the request cannot be sent: {case}")
    detail = getattr(error, "value", None)
    return Unreachable(f"the request got no response: {case}" + (f" ({detail})" if detail else ""))
