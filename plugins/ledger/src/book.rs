//! Accounts and transfers, each stored as its own document, and the steps of a transfer.
//!
//! A transfer writes up to eight times, and the host may be killed between any two writes. The host then dispatches the
//! call again with the same idempotency key, never twice at once. Other transfers run at the same time in other
//! instances. So every step can be repeated, and finds in the store whether it was done:
//!
//! | step | document | done when |
//! |---|---|---|
//! | 1. intend | `transfer/KEY` | the record exists; later attempts use it |
//! | 2. announce | `halfway` | it contains KEY |
//! | 3. debit | `account/FROM` | its `unsettled` contains KEY, written together with the new balance |
//! | 4. credit | `account/TO` | the same |
//! | 5. post | `transfer/KEY` | the record is `posted`; after that nothing is applied any more |
//! | 6. trim | both accounts | `unsettled` no longer contains KEY, so that accounts stay small |
//! | 7. retire | `halfway` | it no longer contains KEY |
//!
//! If the balance does not cover a debit, step 5 writes `declined` instead. So money is on neither account only between
//! 3 and 4. A transfer that passed 3 always passes 4, because 4 cannot be refused.
//!
//! A call that ends without a kill (cancelled with its turn, out of time) is not dispatched again. If it ends between 3
//! and 4, the next call of any tool of this plugin finds it in `halfway` and does steps 4 to 7. If it ends before 3, it
//! has moved nothing: its record stays `intended`, and `ledger_audit` counts it as unfinished.
//!
//! So two calls may do steps 4 to 7 of one transfer at the same time. Steps 3 and 4 read the account first, then the
//! record, and then write the account by compare-and-swap. If the record is still `intended`, nobody had trimmed the
//! account when it was read. So a missing KEY means that the step was not done.

use std::collections::BTreeSet;

use toolgate_sdk::keyvalue::Bucket;
use toolgate_sdk::prelude::*;

/// What to move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Order {
    /// The account that pays.
    #[schemars(regex(pattern = r"^[a-z0-9_-]{1,40}$"))]
    pub from: String,
    /// The account that is paid.
    #[schemars(regex(pattern = r"^[a-z0-9_-]{1,40}$"))]
    pub to: String,
    /// How much, in cents.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub amount_cents: u64,
    /// The purpose.
    #[schemars(length(max = 140))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<String>,
}

/// A transfer that was posted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// The transfer's number: the idempotency key of the call that ordered it.
    pub transfer: String,
    #[serde(flatten)]
    pub order: Order,
}

/// The totals of the whole ledger. Transfers that run meanwhile can make `total_cents` differ from
/// `opened_cents`; with none unfinished, any difference is an error of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// How many accounts there are.
    pub accounts: u64,
    /// The sum of their balances.
    pub total_cents: u64,
    /// The sum of their opening balances.
    pub opened_cents: u64,
    /// How many transfers were posted.
    pub transfers: u64,
    /// How many were refused because the account did not hold enough.
    pub declined: u64,
    /// How many are still on their way.
    pub unfinished: u64,
}

/// The value under `account/NAME`.
#[derive(Debug, Serialize, Deserialize)]
struct Account {
    balance: u64,
    opened_with: u64,
    /// The idempotency key of the call that opened it. Only that call may open it again.
    opened_by: String,
    /// Transfers that changed the balance but are not posted yet.
    unsettled: BTreeSet<String>,
}

/// The value under `transfer/KEY`.
#[derive(Debug, Serialize, Deserialize)]
struct Transfer {
    order: Order,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Intended,
    Posted,
    Declined { balance: u64 },
}

/// The plugin's bucket as a ledger.
pub struct Book(Bucket);

impl Book {
    /// Opens the plugin's bucket.
    pub fn open() -> Result<Self, Failure> {
        Ok(Self(Bucket::open()?))
    }

    /// Opens an account and returns its balance. The same call may repeat this.
    pub fn open_account(&self, name: &str, balance: u64, key: &str) -> Result<u64, Failure> {
        self.0.update(&account_key(name), |slot: &mut Option<Account>| match slot {
            Some(account) if account.opened_by == key => Ok(account.opened_with),
            Some(_) => Err(Failure::invalid_arguments(format!("there is an account `{name}` already"))),
            None => {
                let opened_by = key.to_owned();
                *slot = Some(Account { balance, opened_with: balance, opened_by, unsettled: BTreeSet::new() });
                Ok(balance)
            }
        })
    }

    /// The balance of an account.
    pub fn balance(&self, name: &str) -> Result<u64, Failure> {
        Ok(self.account(name)?.balance)
    }

    /// Performs the rest of a transfer. Every attempt returns the same answer.
    pub fn transfer(&self, key: &str, order: Order) -> Result<Receipt, Failure> {
        let Transfer { order, mut state } = self.intend(key, order)?;
        if state == State::Intended {
            self.halfway(|keys| keys.insert(key.to_owned()))?;
            state = match self.debit(key, &order)? {
                Ok(()) => {
                    self.credit(key, &order)?;
                    State::Posted
                }
                Err(balance) => State::Declined { balance },
            };
            self.post(key, &order, state.clone())?;
        }
        self.clear(key, &order)?;
        match state {
            State::Declined { balance } => Err(Failure::failed(format!(
                "`{}` holds {balance} cents, which does not cover {}",
                order.from, order.amount_cents
            ))),
            State::Intended | State::Posted => Ok(Receipt { transfer: key.to_owned(), order }),
        }
    }

    /// Finishes the transfers that took money from an account and then stopped.
    pub fn finish_halfway(&self) -> Result<(), Failure> {
        for key in self.0.get::<BTreeSet<String>>(HALFWAY)?.unwrap_or_default() {
            let Some(Transfer { order, state }) = self.0.get(&transfer_key(&key))? else { continue };
            match state {
                State::Intended if self.account(&order.from)?.unsettled.contains(&key) => {
                    self.credit(&key, &order)?;
                    self.post(&key, &order, State::Posted)?;
                    self.clear(&key, &order)?;
                }
                // It has moved nothing, or a call is about to debit it.
                State::Intended => {}
                State::Posted | State::Declined { .. } => self.clear(&key, &order)?,
            }
        }
        Ok(())
    }

    /// Reads every account and every transfer.
    pub fn audit(&self) -> Result<Audit, Failure> {
        let mut audit =
            Audit { accounts: 0, total_cents: 0, opened_cents: 0, transfers: 0, declined: 0, unfinished: 0 };
        for key in self.0.keys("account/")? {
            if let Some(account) = self.0.get::<Account>(&key)? {
                audit.accounts += 1;
                audit.total_cents += account.balance;
                audit.opened_cents += account.opened_with;
            }
        }
        for key in self.0.keys("transfer/")? {
            match self.0.get::<Transfer>(&key)?.map(|transfer| transfer.state) {
                Some(State::Posted) => audit.transfers += 1,
                Some(State::Declined { .. }) => audit.declined += 1,
                Some(State::Intended) | None => audit.unfinished += 1,
            }
        }
        Ok(audit)
    }

    /// Step 1: the record of the transfer, new or from an earlier attempt. All mistakes in the order are found before
    /// anything is written.
    fn intend(&self, key: &str, order: Order) -> Result<Transfer, Failure> {
        if let Some(transfer) = self.0.get::<Transfer>(&transfer_key(key))? {
            if transfer.order != order {
                return Err(Failure::invalid_arguments("this idempotency key belongs to another transfer"));
            }
            return Ok(transfer);
        }
        if order.from == order.to {
            return Err(Failure::invalid_arguments("`from` and `to` are the same account"));
        }
        self.account(&order.from)?;
        self.account(&order.to)?;
        let transfer = Transfer { order, state: State::Intended };
        self.0.set(&transfer_key(key), &transfer)?;
        Ok(transfer)
    }

    /// Step 3. The inner error is the balance that does not cover the amount.
    fn debit(&self, key: &str, order: &Order) -> Result<Result<(), u64>, Failure> {
        self.change(&order.from, |account| {
            if account.unsettled.contains(key) || !self.is_intended(key)? {
                return Ok(Ok(()));
            }
            let Some(rest) = account.balance.checked_sub(order.amount_cents) else {
                return Ok(Err(account.balance));
            };
            account.balance = rest;
            account.unsettled.insert(key.to_owned());
            Ok(Ok(()))
        })
    }

    /// Step 4. It cannot overflow: an account never contains more than all opening balances together, and it would take
    /// eighteen million accounts of the largest opening balance to exceed 64 bits.
    fn credit(&self, key: &str, order: &Order) -> Result<(), Failure> {
        self.change(&order.to, |account| {
            if !account.unsettled.contains(key) && self.is_intended(key)? {
                account.unsettled.insert(key.to_owned());
                account.balance += order.amount_cents;
            }
            Ok(())
        })
    }

    /// Step 5.
    fn post(&self, key: &str, order: &Order, state: State) -> Result<(), Failure> {
        Ok(self.0.set(&transfer_key(key), &Transfer { order: order.clone(), state })?)
    }

    /// Steps 6 and 7.
    fn clear(&self, key: &str, order: &Order) -> Result<(), Failure> {
        self.trim(key, &order.from)?;
        self.trim(key, &order.to)?;
        self.halfway(|keys| keys.remove(key))
    }

    /// Whether nobody has posted or declined the transfer.
    fn is_intended(&self, key: &str) -> Result<bool, Failure> {
        Ok(self.0.get::<Transfer>(&transfer_key(key))?.is_some_and(|transfer| transfer.state == State::Intended))
    }

    /// Changes the set of transfers that are on their way.
    fn halfway(&self, step: impl Fn(&mut BTreeSet<String>) -> bool) -> Result<(), Failure> {
        self.0.update(HALFWAY, |keys| {
            step(keys);
            Ok(())
        })
    }

    /// Writes nothing if the key was already removed.
    fn trim(&self, key: &str, name: &str) -> Result<(), Failure> {
        self.change(name, |account| {
            account.unsettled.remove(key);
            Ok(())
        })
    }

    fn account(&self, name: &str) -> Result<Account, Failure> {
        self.0.get(&account_key(name))?.ok_or_else(|| no_account(name))
    }

    /// Changes an existing account by compare-and-swap.
    fn change<R>(&self, name: &str, mut step: impl FnMut(&mut Account) -> Result<R, Failure>) -> Result<R, Failure> {
        self.0.update(&account_key(name), |slot: &mut Option<Account>| {
            step(slot.as_mut().ok_or_else(|| no_account(name))?)
        })
    }
}

/// The key of the transfers that are on their way: a set of their keys.
const HALFWAY: &str = "halfway";

fn account_key(name: &str) -> String {
    format!("account/{name}")
}

fn transfer_key(key: &str) -> String {
    format!("transfer/{key}")
}

fn no_account(name: &str) -> Failure {
    Failure::invalid_arguments(format!("there is no account `{name}`; open it with ledger_open"))
}
