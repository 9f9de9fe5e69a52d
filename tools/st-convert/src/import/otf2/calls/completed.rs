//! Which requests a call completes.

use serde_json::{Value, json};
use st_model::calls::{Row, names};

use super::{Noted, Open, Parameters, Reading};
use crate::import::otf2::requests::{Id, ended};
use crate::matters::Matter;
use crate::otf2::Record;

impl Reading<'_> {
    /// What a call completes.
    pub(super) fn complete(&mut self, row: &Row, records: &[Noted], to: &mut Parameters) {
        let mut completed: Vec<(String, Value)> = Vec::new();
        for Noted { record, .. } in records {
            let Some(id) = ended(record) else { continue };
            let Some(Open { at, name, by }) = self.open.remove(&id) else {
                let is_request = matches!(id, Id::Request(_));
                self.to.leave("ends of requests that no call of their rank has begun", is_request.into());
                continue;
            };
            self.threads[by].untold.remove(&at);
            let what = match record {
                Record::Irecv(peer, _) if self.is_told(peer) => {
                    let source = self.position(peer.comm, peer.rank);
                    json!({"request": name, "source": source, "tag": peer.tag, "bytes": peer.bytes})
                }
                Record::OperationComplete(_, bytes, _) => json!({"request": name, "bytes": bytes}),
                Record::Cancelled(_) => json!({"request": name, "bytes": "cancelled"}),
                _ => json!({"request": name}),
            };
            match completed.iter_mut().find(|(other, _)| *other == name) {
                // One request of two messages: what is received says more.
                Some(known) if matches!(record, Record::Irecv(..)) => known.1 = what,
                Some(_) => {}
                None => completed.push((name, what)),
            }
        }
        if completed.is_empty() && !row.properties.poll {
            self.presumed(row, &mut completed);
        }
        if ![names::MPI_Wait, names::MPI_Waitall].contains(&row.base()) {
            self.to.leave(Matter::Pending.name(), 1);
        }
        let requests = completed.iter().map(|(name, _)| Value::from(name.as_str()));
        to.insert("requests".into(), requests.collect());
        // That some of several are complete their number says.
        if row.properties.poll && row.slot("flag").is_some() {
            to.insert("flag".into(), (!completed.is_empty()).into());
        }
        to.insert("completed".into(), completed.into_iter().map(|(_, what)| what).collect());
    }

    /// A call that waits, and of which nothing is told: it completes what must be complete after it.
    fn presumed(&mut self, row: &Row, completed: &mut Vec<(String, Value)>) {
        // Only a call that waits for all says how many that are.
        let all = row.slot("n").is_some();
        let most = if all { usize::MAX } else { 1 };
        while completed.len() < most {
            let Some((at, (id, name))) = self.own().untold.pop_first() else { break };
            // The number may be another's by now.
            if self.open.get(&id).is_some_and(|open| open.at == at) {
                self.open.remove(&id);
            }
            self.to.leave("ends of requests (the next call that waits has them)", 1);
            let what = json!({"request": name});
            completed.push((name, what));
        }
    }
}
