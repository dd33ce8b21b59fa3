//! Who decides that a person is needed: the operator's rules over plugins, tools, callers and arguments, and policies that
//! are programs of their own. Deny goes over ask, ask over allow; nothing depends on the order of rules; and what cannot be
//! judged goes to the strict side.

mod combined;
mod condition;
mod decimal;
mod pattern;
mod pointer;
mod rule;
mod rules;

pub use combined::{Combined, Dynamic, Effect, Explanation};
pub use condition::{Condition, Test, Truth};
pub use decimal::{Decimal, InvalidDecimal};
pub use pattern::{CallerPattern, Glob, InvalidPattern, Pattern};
pub use pointer::{Found, InvalidPointer, Pointer};
pub use rule::{Arguments, Fit, OperatorRule, Subject, word};
pub use rules::{Rules, Step};
