//! A plugin with legal declarations that imports wasi:sockets, because it connects to the network with std.

use std::net::TcpStream;

use toolgate_sdk::prelude::*;

toolgate_sdk::plugin! {
    Tool::server("call_home", "Connects to a port of this machine.", |_: NoArguments, _: &Call| {
        Ok(TcpStream::connect(("127.0.0.1", 80))?.peer_addr()?.to_string())
    }),
}
