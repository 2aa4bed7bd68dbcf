//! Values of a type in transactions.

use duramen::{
    CommitOptions, Database, ErrorKind, Filter, Record, ScanOptions, TransactOptions, Transaction,
    TypedCollection,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
struct Account {
    #[record(key)]
    owner: String,
    balance: i64,
    #[record(version)]
    version: u64,
}

#[derive(Debug, Clone, PartialEq, Record, Serialize, Deserialize)]
struct Entry {
    #[record(key)]
    id: u64,
    amount: i64,
}

fn how() -> CommitOptions {
    CommitOptions::default()
}

fn account(owner: &str, balance: i64) -> Account {
    Account { owner: owner.to_owned(), balance, version: 0 }
}

/// Ann, at version 2, and bob.
fn accounts(db: &Database) -> TypedCollection<Account> {
    let accounts = db.create_typed_collection("accounts").unwrap();
    accounts.put_many(&[account("ann", 10), account("bob", 50)], &how()).unwrap();
    accounts.put(&account("ann", 50), &how()).unwrap();
    accounts
}

/// Runs a body in both forms that transactions have.
fn in_both_forms(body: impl Fn(&mut Transaction, &TypedCollection<Account>)) {
    let db = Database::memory().unwrap();
    let found = accounts(&db);
    let done = db.transact(&TransactOptions::default(), |transaction| {
        body(transaction, &found);
        Ok(())
    });
    done.unwrap();
    let db = Database::memory().unwrap();
    let found = accounts(&db);
    let mut transaction = db.transaction();
    body(&mut transaction, &found);
    transaction.commit(&how()).unwrap();
}

/// Whoever saved a value by hand in a transaction stored its version as a member, and nobody could
/// read the value any more.
#[test]
fn values_are_read_and_saved_with_their_versions_in_a_transaction() {
    let db = Database::memory().unwrap();
    let accounts = accounts(&db);
    let entries = db.create_typed_collection::<Entry>("entries").unwrap();
    db.transact(&TransactOptions::default(), |transaction| {
        let mut ann = transaction.typed(&accounts).get(&"ann".to_owned())?.unwrap();
        assert_eq!((ann.balance, ann.version), (50, 2));
        ann.balance -= 20;
        transaction.typed(&accounts).save(&ann)?;
        transaction.typed(&accounts).insert(&account("cy", 20))?;
        transaction.typed(&entries).save(&Entry { id: 1, amount: 20 })
    })
    .unwrap();
    let ann = accounts.get(&"ann".to_owned()).unwrap().unwrap();
    assert_eq!((ann.balance, ann.version), (30, 3));
    let cy = accounts.get(&"cy".to_owned()).unwrap().unwrap();
    assert_eq!((cy.balance, cy.version), (20, 1));
    let stored = accounts.collection().get("ann").unwrap().unwrap().json;
    assert_eq!(stored, r#"{"owner":"ann","balance":30}"#);
    assert_eq!(entries.get(&1).unwrap(), Some(Entry { id: 1, amount: 20 }));
}

#[test]
fn a_value_keeps_its_version_in_a_transaction_whatever_it_did() {
    in_both_forms(|transaction, accounts| {
        let mut accounts = transaction.typed(accounts);
        let [ann, dee] = ["ann", "dee"].map(str::to_owned);
        for balance in [1, 2] {
            let mut value = accounts.get(&ann).unwrap().unwrap();
            assert_eq!(value.version, 2);
            value.balance = balance;
            accounts.save(&value).unwrap();
        }
        accounts.save(&account("dee", 1)).unwrap();
        let mut value = accounts.get(&dee).unwrap().unwrap();
        value.balance = 2;
        accounts.save(&value).unwrap();
        assert!(accounts.delete(&ann).unwrap());
        assert!(!accounts.delete(&ann).unwrap());
        assert_eq!(accounts.get(&ann).unwrap(), None);
        accounts.save(&account("ann", 3)).unwrap();
        let again = accounts.get(&ann).unwrap().unwrap();
        accounts.save(&again).unwrap();
        accounts.put(&account("bob", 7)).unwrap();
        assert_eq!(accounts.count().unwrap(), 3);
        let scanned = accounts.scan(&ScanOptions::default()).unwrap();
        let told = scanned.iter().map(|value| (value.balance, value.version));
        assert_eq!(told.collect::<Vec<_>>(), [(3, 2), (7, 1), (2, 1)]);
        let rich = accounts.find(&Filter::gt("balance", 2)).unwrap();
        assert_eq!(rich.iter().map(|value| value.balance).sum::<i64>(), 10);
    });
}

#[test]
fn a_value_of_another_version_is_a_conflict_in_a_transaction() {
    in_both_forms(|transaction, accounts| {
        let mut late = accounts.get(&"ann".to_owned()).unwrap().unwrap();
        late.version = 1;
        let mut accounts = transaction.typed(accounts);
        for value in [late, account("ann", 0), Account { version: 1, ..account("eve", 0) }] {
            let refused = accounts.save(&value).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Conflict, "{value:?}");
        }
        assert_eq!(accounts.insert(&account("bob", 0)).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(accounts.get(&"ann".to_owned()).unwrap().unwrap().balance, 50);
    });
}

#[test]
fn a_transaction_that_others_came_before_reads_again() {
    let db = Database::memory().unwrap();
    let accounts = accounts(&db);
    let mut attempts = 0;
    db.transact(&TransactOptions::default(), |transaction| {
        attempts += 1;
        let mut ann = transaction.typed(&accounts).get(&"ann".to_owned())?.unwrap();
        if attempts == 1 {
            accounts.put(&account("ann", 70), &how())?;
        }
        ann.balance += 1;
        transaction.typed(&accounts).save(&ann)
    })
    .unwrap();
    let ann = accounts.get(&"ann".to_owned()).unwrap().unwrap();
    assert_eq!((attempts, ann.balance, ann.version), (2, 71, 4));
}
