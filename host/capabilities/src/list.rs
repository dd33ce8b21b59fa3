//! The list of capabilities. A row here is the only registration of a capability.
//!
//! A row has the key in `[plugin.NAME.grants]` and in a manifest's `[wants]`, the type of one
//! [`GrantRequest`](crate::request::GrantRequest), the capability that it is for, and the folder with its `State`, which implements
//! [`Interface`](crate::interface::Interface). Secrets have no interface of their own.
//!
//! Manifests are written in this order. New rows come last.

/// Passes the list to a macro that generates code for each row.
macro_rules! listed {
    ($generate:ident) => {
        $generate! {
            /// wasi:keyvalue: buckets of the plugin's own that outlast its calls. `true`, or how much it may keep.
            keyvalue: keyvalue::RequestedKeyValue of KeyValue, linked by keyvalue;
            /// wasi:http: where it may send requests.
            http: http::RequestedHttp of Http, linked by http;
            /// wasi:config: the values that it is given, by name.
            config: config::RequestedValue of Config, linked by config;
            /// wasi:filesystem: folders of this machine that it may use.
            folders: filesystem::RequestedFolder of Filesystem, linked by filesystem;
            /// Values that it can send and not read, by the name under which wasi:config gives it a placeholder.
            secrets: secrets::RequestedSecret of Config;
            /// Other tools that its durable tools may call, by name, with `*` at the end for all that begin so.
            calls: calls::RequestedTools of Calls, linked by calls;
        }
    };
}

pub(crate) use listed;
