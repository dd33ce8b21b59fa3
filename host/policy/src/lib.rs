//! Who decides that a person is needed: the operator's rules over plugins, tools, callers and arguments.
