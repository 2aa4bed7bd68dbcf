//! The writers of the bank. Some hold a transaction open while others go on; some read first, and
//! write what they made of it if nothing they read has changed since.

use std::collections::BTreeSet;

use duramen::{CommitOptions, Database, Durability, ErrorKind, JsonPointer, Revision, Transaction};

use super::{ACCOUNTS, Bank, COUNTERS, DURABILITIES, Stop};
use crate::Random;

/// Where a writer is.
pub(super) enum Writer {
    Idle,
    /// It knows balances, and the revisions that had them.
    Read {
        accounts: Accounts,
        balances: [i64; 2],
        revisions: [Revision; 2],
    },
    /// It has taken from the first account and not yet given to the second.
    Open {
        accounts: Accounts,
        transaction: Box<Transaction>,
    },
}

/// What goes from where to where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accounts {
    places: [(usize, &'static str); 2],
    amount: i64,
}

impl Writer {
    /// The accounts that nobody else can change now.
    pub(super) fn holds(&self) -> Vec<usize> {
        match self {
            Self::Idle | Self::Read { .. } => Vec::new(),
            Self::Open { accounts, .. } => accounts.places.map(|(account, _)| account).into(),
        }
    }
}

impl Accounts {
    /// Places in two documents.
    pub(super) fn draw(random: &mut Random) -> Self {
        let from = random.index(ACCOUNTS.len());
        let to = (from + 1 + random.index(ACCOUNTS.len() - 1)) % ACCOUNTS.len();
        let field = |random: &mut Random| random.choose(&["/main", "/saved"]);
        let places = [(from, field(random)), (to, field(random))];
        Self { places, amount: 1 + i64::try_from(random.below(40)).unwrap_or(0) }
    }

    pub(super) fn any_of(&self, accounts: &BTreeSet<usize>) -> bool {
        self.places.iter().any(|(account, _)| accounts.contains(account))
    }
}

/// A change that needs the power on and the device to work.
type Changed<T = ()> = Result<T, duramen::Error>;

impl Bank {
    /// A writer begins: reads what it needs, or takes money out.
    pub(super) fn begin(
        &mut self,
        db: &Database,
        accounts: Accounts,
        taken: &BTreeSet<usize>,
    ) -> Result<Writer, Stop> {
        if self.machine.random.one_in(2) {
            let read = read(db, accounts).map_err(|error| self.machine.stop(&error))?;
            let (balances, revisions) = read;
            return Ok(Writer::Read { accounts, balances, revisions });
        }
        if accounts.any_of(taken) {
            return Ok(Writer::Idle);
        }
        let mut transaction = db.transaction();
        let moved = add(&mut transaction, accounts.places[0], -accounts.amount);
        moved.map_err(|error| self.machine.stop(&error))?;
        Ok(Writer::Open { accounts, transaction: Box::new(transaction) })
    }

    /// Gives what was taken, and counts the transfer.
    pub(super) fn transfer(
        &mut self,
        writer: usize,
        accounts: Accounts,
        mut transaction: Transaction,
    ) -> Result<(), Stop> {
        let moved = add(&mut transaction, accounts.places[1], accounts.amount)
            .and_then(|()| count(&mut transaction, writer));
        moved.map_err(|error| self.machine.stop(&error))?;
        if self.machine.random.one_in(10) {
            transaction.rollback();
            self.machine.seen.insert("rollback");
            return Ok(());
        }
        self.commit(writer, transaction)
    }

    /// Writes what follows from balances that were read before, unless they changed since.
    pub(super) fn transfer_as_read(
        &mut self,
        db: &Database,
        writer: usize,
        (accounts, balances, revisions): (Accounts, [i64; 2], [Revision; 2]),
    ) -> Result<(), Stop> {
        let now = read(db, accounts).map_err(|error| self.machine.stop(&error))?;
        let is_current = now.1 == revisions;
        let mut transaction = db.transaction();
        let changed = write(&mut transaction, accounts, (balances, revisions))
            .and_then(|()| count(&mut transaction, writer));
        match changed {
            Ok(()) if is_current => self.commit(writer, transaction),
            Ok(()) => Err(Stop::Wrong(format!(
                "a change based on {revisions:?} was let pass at {:?}",
                now.1
            ))),
            Err(error) if error.kind() == ErrorKind::Conflict && !is_current => {
                self.machine.seen.insert("conflict");
                Ok(())
            }
            Err(error) => Err(self.machine.stop(&error)),
        }
    }

    fn commit(&mut self, writer: usize, transaction: Transaction) -> Result<(), Stop> {
        let durability = self.machine.random.choose(&DURABILITIES);
        let options = CommitOptions { durability: Some(durability), ..CommitOptions::default() };
        match transaction.commit(&options) {
            Ok(_) => {
                self.acknowledged[writer] += 1;
                if durability == Durability::Sync {
                    self.durable = self.acknowledged;
                }
                self.machine.seen.insert("transfer");
                Ok(())
            }
            Err(error) => {
                if self.machine.device.is_off() || error.kind() == ErrorKind::Unknown {
                    self.under_way = Some(writer);
                }
                Err(self.machine.stop(&error))
            }
        }
    }
}

/// The balances of two accounts at one commit, and the revisions of their documents.
fn read(db: &Database, accounts: Accounts) -> Changed<([i64; 2], [Revision; 2])> {
    let snapshot = db.snapshot();
    let mut found = ([0; 2], [Revision(0); 2]);
    for (at, (account, field)) in accounts.places.into_iter().enumerate() {
        let document = snapshot.document(ACCOUNTS[account])?;
        let mut text = Vec::new();
        document.append_json(
            &JsonPointer::parse(field)?,
            &duramen::Format::default(),
            &mut text,
        )?;
        found.0[at] = amount(&String::from_utf8_lossy(&text));
        found.1[at] = document.revision();
    }
    Ok(found)
}

/// Sets balances from those that were read, at the revisions that had them.
fn write(
    transaction: &mut Transaction,
    accounts: Accounts,
    (balances, revisions): ([i64; 2], [Revision; 2]),
) -> Changed {
    let changes = [-accounts.amount, accounts.amount];
    for (at, (account, field)) in accounts.places.into_iter().enumerate() {
        transaction.expect(ACCOUNTS[account], revisions[at])?;
        let balance = (balances[at] + changes[at]).to_string();
        transaction.set(ACCOUNTS[account], &JsonPointer::parse(field)?, balance.as_bytes())?;
    }
    Ok(())
}

fn add(transaction: &mut Transaction, (account, field): (usize, &str), change: i64) -> Changed {
    let (name, at) = (ACCOUNTS[account], JsonPointer::parse(field)?);
    let balance = amount(&transaction.get(name, &at)?) + change;
    transaction.set(name, &at, balance.to_string().as_bytes())
}

fn count(transaction: &mut Transaction, writer: usize) -> Changed {
    let at = JsonPointer::parse(&format!("/{writer}"))?;
    let count = amount(&transaction.get(COUNTERS, &at)?) + 1;
    transaction.set(COUNTERS, &at, count.to_string().as_bytes())
}

fn amount(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no amount"))
}
