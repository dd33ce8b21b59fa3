"""Shows schemathesis how this API takes a component's bytes."""

import schemathesis


@schemathesis.serializer("application/wasm")
def component(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()
