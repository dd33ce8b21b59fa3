//! A ledger: accounts in the plugin's own key-value store, and transfers between them that a person approves.
//!
//! [`book`] has the rules that keep the sums correct after any kill. This file has the tools.

use std::time::Duration;

use toolgate_sdk::prelude::*;

mod book;
#[cfg(test)]
mod tests;

use book::{Audit, Book, Order, Receipt};

/// A new account.
#[derive(Deserialize, JsonSchema)]
struct Open {
    /// Lower-case letters, digits, `_` and `-`.
    #[schemars(regex(pattern = r"^[a-z0-9_-]{1,40}$"))]
    account: String,
    /// The opening balance, in cents.
    #[schemars(range(max = 1_000_000_000_000_u64))]
    opening_balance: u64,
}

/// An account that exists.
#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Its name.
    #[schemars(regex(pattern = r"^[a-z0-9_-]{1,40}$"))]
    account: String,
}

/// The balance of an account.
#[derive(Serialize, JsonSchema)]
struct Balance {
    account: String,
    balance_cents: u64,
}

/// The ledger, after the transfers that an earlier call left halfway. Tools that only read also finish them, so that nobody
/// sees money on neither account.
fn book() -> Result<Book, Failure> {
    let book = Book::open()?;
    book.finish_halfway()?;
    Ok(book)
}

fn open(args: Open, call: &Call) -> Result<Balance, Failure> {
    let balance_cents = book()?.open_account(&args.account, args.opening_balance, call.idempotency_key())?;
    Ok(Balance { account: args.account, balance_cents })
}

fn transfer(order: Order, call: &Call) -> Result<Receipt, Failure> {
    if call.attempt() > 1 {
        call.log(Level::Info, "dispatched again: going on where the last attempt stopped");
    }
    book()?.transfer(call.idempotency_key(), order)
}

fn balance(args: Which, _call: &Call) -> Result<Balance, Failure> {
    let balance_cents = book()?.balance(&args.account)?;
    Ok(Balance { account: args.account, balance_cents })
}

fn audit(_: NoArguments, _call: &Call) -> Result<Audit, Failure> {
    book()?.audit()
}

toolgate_sdk::plugin! {
    Tool::server("ledger_open", "Opens an account with a first balance in cents.", open).title("Open an account"),

    Tool::server("ledger_transfer", "Moves an amount in cents from one account to another.", transfer)
        .requires_approval()
        .title("Transfer money")
        .prompt("Transfer {amount_cents} cents from {from} to {to}?")
        .editable(&["amount_cents", "memo"])
        .expires(Duration::from_secs(24 * 60 * 60))
        .recovery(Recovery::Retry)
        .destructive(),

    Tool::server("ledger_balance", "Tells how many cents an account holds.", balance)
        .title("Balance of an account")
        .read_only()
        .keep_latest(4),

    Tool::server("ledger_audit", "Sums over all accounts, and counts the transfers.", audit)
        .title("Audit")
        .read_only()
        .keep_latest(1),
}
