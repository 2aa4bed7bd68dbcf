//! What a transaction staged beside the columns and names no more: order blocks that a later change
//! of the same order took the place of, and long values that were set again.
//!
//! A transaction with many changes of one array adds some blocks with each of them, of which its
//! revision has the last ones only. The others would be in its commit and in segments for ever.

use std::sync::atomic::Ordering;

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::state::{Datum, Sequence};
use crate::tree::writer::Writer;

/// Blocks and values that are few enough to let all of them be, at the end of a transaction and
/// before that.
const FEW_AT_END: usize = 16;
pub(crate) const FEW: usize = 1 << 10;
/// How many order blocks a long value counts as.
const BLOCKS_OF_VALUE: usize = 16;
/// Nodes looked at while the tree's lock is held.
const NODES_AT_A_TIME: usize = 256;

impl Writer {
    /// Lets go what no state names any more, if it may be much by now; between two changes.
    pub(crate) fn let_go_much(&self) -> Result<()> {
        if self.staged_apart() < self.much_apart.load(Ordering::Relaxed) {
            return Ok(());
        }
        let left = self.let_go()?;
        // Each is looked at a few times at most, however many changes there are.
        let much = self.staged_apart().saturating_add(FEW.max(2 * left));
        self.much_apart.store(much, Ordering::Relaxed);
        Ok(())
    }

    /// The same at the end of the transaction.
    pub(crate) fn let_go_unnamed(&self) -> Result<()> {
        if self.staged_apart() >= FEW_AT_END { self.let_go().map(drop) } else { Ok(()) }
    }

    fn staged_apart(&self) -> usize {
        self.tree.orders.staged_len() + BLOCKS_OF_VALUE * self.tree.blobs.staged_len()
    }

    /// How many are left, as [`Writer::staged_apart`] counts.
    fn let_go(&self) -> Result<usize> {
        let nodes = self.tree.data.write().naming().to_vec();
        let (mut roots, mut values) = (Vec::new(), FxHashSet::default());
        for nodes in nodes.chunks(NODES_AT_A_TIME) {
            self.tree.read(|data| {
                for &node in nodes {
                    match data.state(node, self.revision)? {
                        Datum::Array(Sequence::Blocks(root))
                        | Datum::Map(Sequence::Blocks(root)) => roots.push(root),
                        Datum::Apart { blob, .. } => drop(values.insert(blob)),
                        _ => {}
                    }
                }
                Ok(())
            })?;
        }
        let blocks = self.tree.orders.keep_staged(roots);
        Ok(blocks + BLOCKS_OF_VALUE * self.tree.blobs.keep_staged(&values))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::io::{Device, MemoryDevice};
    use crate::{CommitOptions, Database, Document, JsonPath, JsonPointer, Options};

    fn open(device: &Arc<dyn Device>) -> (Database, Document) {
        let options = Options { background: false, ..Options::default() };
        let db = Database::open_device(Arc::clone(device), options).unwrap();
        let found = db.document("d").or_else(|_| db.create_document("d"));
        (db, found.unwrap())
    }

    /// What the document shows when it is opened again, from the journal and from segments.
    fn check(device: &Arc<dyn Device>, expected: &Value) {
        for _ in 0..2 {
            let (db, document) = open(device);
            let shown = document.head().unwrap().to_json().unwrap();
            assert_eq!(&serde_json::from_str::<Value>(&shown).unwrap(), expected);
            db.checkpoint().unwrap();
            assert!(db.check().unwrap().is_clean());
        }
    }

    fn bytes_apart(document: &Document) -> usize {
        let (_, tree) = document.parts();
        tree.orders.young_bytes() + tree.blobs.young_bytes()
    }

    /// Each change once left the blocks behind that the next one took the place of, a megabyte for
    /// two hundred, in memory, in the commit and in segments.
    #[test]
    fn many_changes_of_one_order_leave_the_blocks_of_the_last_one() {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let (db, document) = open(&device);
        let options = CommitOptions::default();
        let mut model: Vec<Value> = (0..2_000).map(|n| json!({ "n": n })).collect();
        document.put(json!(model).to_string(), &options).unwrap();
        let insert = |n: usize| {
            let at = n * 7_919 % model.len();
            model.insert(at, json!({ "new": n }));
            json!({ "op": "add", "path": format!("/{at}"), "value": { "new": n } })
        };
        let patch: Vec<Value> = (0..3_000).map(insert).collect();
        document.patch(json!(patch).to_string(), &options).unwrap();
        assert!(bytes_apart(&document) < 1 << 20, "{} bytes", bytes_apart(&document));
        let some = JsonPath::parse("$[?@.n < 1000]").unwrap();
        model.retain(|value| value["n"].as_u64().is_none_or(|n| n >= 1_000));
        assert_eq!(document.remove_all(&some, &options).unwrap().1, 1_000);
        assert!(bytes_apart(&document) < 2 << 20, "{} bytes", bytes_apart(&document));
        drop((db, document));
        check(&device, &json!(model));
    }

    #[test]
    fn a_long_value_that_is_set_again_and_again_is_kept_once() {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let (db, document) = open(&device);
        document.put(r#"{"a":0,"b":[0]}"#, &CommitOptions::default()).unwrap();
        let long = |n: usize| json!(format!("{n:09}").repeat(1_000));
        let mut transaction = db.transaction();
        for (n, place) in (0..500).zip(["/a", "/b/0"].iter().cycle()) {
            let place = JsonPointer::parse(place).unwrap();
            transaction.set("d", &place, long(n).to_string().as_bytes()).unwrap();
            let bytes = transaction.staged_bytes();
            assert!(bytes < 2 << 20, "{bytes} bytes after {n} changes");
        }
        transaction.commit(&CommitOptions::default()).unwrap();
        assert!(bytes_apart(&document) < 20_000, "{} bytes", bytes_apart(&document));
        drop((db, document));
        check(&device, &json!({ "a": long(498), "b": [long(499)] }));
    }
}
