//! Decides whether a call needs a person: the operator's rules over plugins, tools, callers and arguments, and policies
//! that are components. Deny wins over ask, and ask over allow. The order of rules does not matter. An unclear
//! condition counts as the stricter result.

mod combined;
mod condition;
mod decimal;
mod pattern;
mod pointer;
mod rule;
mod rules;

pub use combined::{CallEffect, Combined, Dynamic, Explanation};
pub use condition::{Condition, Test};
pub use decimal::{Decimal, InvalidDecimal};
pub use pattern::{CallerPattern, Glob, InvalidPattern, Pattern, PluginPattern};
pub use pointer::{Found, InvalidPointer, Pointer};
pub use rule::{Arguments, Fit, Moment, OperatorRule, Subject};
pub use rules::{OperatorRules, Step};
