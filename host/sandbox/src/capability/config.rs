//! `wasi:config` (0.2.0-rc.1: `store`): values that the operator gives a plugin, and the placeholders of its secrets.
