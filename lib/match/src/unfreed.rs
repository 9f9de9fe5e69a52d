//! Objects that a program has made and not freed, for those who go through its calls in the order of time anyway: the same as
//! [`crate::leaks::Leaks`] finds by what is stored.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use foldhash::fast::FixedState;
use st_model::calls::{CallId, CallTable, Row};
use st_model::event::Event;

use crate::leaks::{What, objects};

/// Slots of objects that a function makes (`true`) or frees.
type Slots = Vec<(u8, What, bool)>;

/// Those of functions that have any, by number.
static SLOTS: LazyLock<HashMap<CallId, Slots, FixedState>> = LazyLock::new(|| {
    let of = |row: &'static Row| (row.id, objects(row).collect::<Slots>());
    CallTable::builtin().rows().iter().map(of).filter(|(_, slots)| !slots.is_empty()).collect()
});

/// What a call makes and frees: nothing if it failed.
pub fn of_call(event: &Event<'_>) -> impl Iterator<Item = Object> {
    let slots = SLOTS.get(&event.symbol.call).filter(|_| event.symbol.error == 0);
    let object = |(slot, what, makes): &(u8, What, bool)| {
        let index = event.words().one(*slot);
        (index >= 0).then_some(Object { what: *what, index, makes: *makes })
    };
    slots.into_iter().flatten().filter_map(object)
}

/// An object that a call makes, or else frees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Object {
    /// Its kind.
    pub what: What,
    /// Its index in its rank's table.
    pub index: i64,
    /// It is made.
    pub makes: bool,
}

/// Objects of all ranks that are there. Memory: by objects.
#[derive(Default, Debug)]
pub struct Unfreed {
    /// By rank, kind and index in its table: the places that have made it, for a library may make the same object twice.
    objects: HashMap<(u32, What, i64), Vec<u32>, FixedState>,
    /// Ranks that have paused recording: what they free then is not seen.
    unseen: HashSet<u32, FixedState>,
}

impl Unfreed {
    /// A rank makes or frees an object at a place.
    pub fn enter(&mut self, rank: u32, object: Object, place: u32) {
        let Object { what, index, makes } = object;
        let object = (rank, what, index);
        if makes {
            return self.objects.entry(object).or_default().push(place);
        }
        match self.objects.get_mut(&object) {
            Some(places) if places.len() > 1 => drop(places.remove(0)),
            _ => drop(self.objects.remove(&object)),
        }
    }

    /// A rank pauses recording.
    pub fn pause(&mut self, rank: u32) {
        self.unseen.insert(rank);
    }

    /// Rank and place of each that is left; nothing of ranks that have paused recording.
    pub fn left(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let seen = self.objects.iter().filter(|((rank, ..), _)| !self.unseen.contains(rank));
        seen.flat_map(|((rank, ..), places)| places.iter().map(|place| (*rank, *place)))
    }
}
