"""What schemathesis has to be told of this API: how a component's bytes are sent."""

import schemathesis


@schemathesis.serializer("application/wasm")
def component(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()
