//! Objects that a program has made and not freed, for those who go through its calls in the order of time anyway: the same as
//! [`crate::leaks::Leaks`] finds by what is stored.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use foldhash::fast::FixedState;
use st_model::calls::CallTable;
use st_model::event::Event;
use st_model::section::{Section, Symbol};

use crate::communication::pauses;
use crate::leaks::{What, objects};

/// By symbol: slots of objects that its calls make (`true`) or free, if they succeed.
#[derive(Clone, Debug)]
pub struct Slots(Rc<[Vec<(u8, What, bool)>]>);

impl Slots {
    /// Those of a section.
    #[must_use]
    pub fn of(section: &Section) -> Self {
        let row = |s: &Symbol| CallTable::builtin().get(s.call).filter(|_| s.error == 0);
        Self(section.symbols.iter().map(|s| row(s).into_iter().flat_map(objects).collect()).collect())
    }
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
    /// A call at a place.
    pub fn event(&mut self, event: &Event<'_>, slots: &Slots, place: u32) {
        if pauses(event) {
            self.unseen.insert(event.rank);
        }
        let slots = slots.0.get(event.sym as usize).map_or(&[][..], Vec::as_slice);
        for (slot, what, makes) in slots {
            let object = (event.rank, *what, event.words().one(*slot));
            match makes {
                _ if object.2 < 0 => {}
                true => self.objects.entry(object).or_default().push(place),
                false => match self.objects.get_mut(&object) {
                    Some(places) if places.len() > 1 => drop(places.remove(0)),
                    _ => drop(self.objects.remove(&object)),
                },
            }
        }
    }

    /// Rank and place of each that is left; nothing of ranks that have paused recording.
    pub fn left(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let seen = self.objects.iter().filter(|((rank, ..), _)| !self.unseen.contains(rank));
        seen.flat_map(|((rank, ..), places)| places.iter().map(|place| (*rank, *place)))
    }
}
