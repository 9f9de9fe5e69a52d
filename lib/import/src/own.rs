//! What the words of a rank's calls refer to: objects, and the requests of the thread.

use st_capture::record::RankRecorder;
use st_model::calls::{CallId, Object, Slot};
use st_model::objects::Comm;

use crate::escaped::escaped;
use crate::numbers::Numbers;
use crate::objects::{Definition, Definitions, Known};
use crate::predefined::predefined;
use crate::requests::Requests;
use crate::shape::Field;

/// Numbers of requests at most: as many as may be under way at once are told apart.
const REQUESTS: i64 = 1 << 24;

/// The numbers of a thread's calls.
pub(crate) struct Own<'a> {
    pub(crate) recorder: &'a mut RankRecorder,
    pub(crate) objects: &'a mut Known,
    pub(crate) requests: &'a mut Requests,
    pub(crate) definitions: &'a Definitions,
    /// The function that is called, and the place of the call.
    pub(crate) maker: (CallId, u128),
    pub(crate) persistent: bool,
    /// Requests that are begun while one of their name is under way, if that is not refused.
    pub(crate) again: Option<u64>,
    /// Those that are while one of their number is.
    pub(crate) again_numbered: u64,
    /// The source has all that the rank did.
    pub(crate) complete: bool,
}

impl Numbers for Own<'_> {
    fn object(&mut self, object: Object, slot: &Slot, name: &str) -> Result<i64, String> {
        let (call, site) = self.maker;
        if object == Object::Text {
            return Ok(self.recorder.text(call, site, name.to_owned()));
        }
        if let Some(number) = self.objects.find(object, name) {
            return Ok(number);
        }
        let maker = slot.is_made().then_some(self.maker);
        let rank = self.recorder.rank();
        let told = self.definitions.find(object, name, rank);
        let to = &mut self.recorder.objects;
        if let Some((copy, what)) = told {
            if let Definition::Comm(comm) = &*what
                && comm.members.position(rank.into()).is_none()
            {
                return Err(format!("{} has not rank {rank} among its members", escaped(name)));
            }
            return Ok(self.objects.enter(name, copy, &what, maker, to));
        }
        match predefined(object, name) {
            Some(what) => Ok(self.objects.enter(name, 0, &what, None, to)),
            None => Err(format!("{} is not described by a line before", escaped(name))),
        }
    }

    fn request(&mut self, name: &str, makes: bool) -> Result<i64, String> {
        if !makes {
            return Ok(self.requests.find(name));
        }
        if self.requests.has(name) {
            match &mut self.again {
                Some(times) => *times = times.saturating_add(1),
                None => {
                    let name = escaped(name);
                    return Err(format!("{name} is under way: no call has completed or freed it"));
                }
            }
        }
        Ok(self.requests.begin(name, self.persistent))
    }

    fn numbered_request(&mut self, number: i64, field: &Field) -> Result<(), String> {
        if !(0..=REQUESTS).contains(&number) {
            return Err(format!("{number} is no number of a request: they are those from 0 to {REQUESTS}"));
        }
        if field.frees_request() {
            // What the call makes in its place may have its number.
            self.requests.free(number);
        }
        if !field.makes_request() {
            return Ok(());
        }
        if self.requests.has_number(number) {
            if !self.complete {
                return Err(format!(
                    "{number} is under way: no call of the thread has completed or freed it"
                ));
            }
            // Another thread may have completed it, or the rank while its recorder was paused.
            self.again_numbered = self.again_numbered.saturating_add(1);
        }
        self.requests.begin_numbered(number, self.persistent);
        Ok(())
    }

    fn size(&self, datatype: i64) -> Option<i64> {
        self.recorder.objects.types.get(datatype).map(|of| of.content.size)
    }

    fn reach(&self, object: Object, number: i64, known: bool) -> Option<u64> {
        let objects = &self.recorder.objects;
        match object {
            Object::Comm => {
                let Comm { members, remote, .. } = &objects.comms.get(number)?.content;
                let (own, other) = (members.len(), remote.len());
                Some(if known {
                    own.max(other)
                } else if other > 0 {
                    other
                } else {
                    own
                })
            }
            Object::Win => Some(objects.wins.get(number)?.content.members.len()),
            _ => None,
        }
    }

    fn is_from_any(&self, request: i64) -> bool {
        self.requests.is_from_any(request)
    }
}
