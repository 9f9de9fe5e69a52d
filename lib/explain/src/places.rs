//! Functions at call sites, the same for all ranks that make them.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::explanation::Place;
use st_model::num::narrow;
use st_model::section::Section;

/// The places of a trace, by number.
#[derive(Clone, Debug, Default)]
pub struct Places {
    list: Vec<Place>,
    numbers: HashMap<Place, u32, FixedState>,
}

impl Places {
    /// These, in their order.
    pub(crate) fn of_list(list: Vec<Place>) -> Self {
        let numbers = list.iter().zip(0..).map(|(place, n)| (*place, n)).collect();
        Self { list, numbers }
    }

    /// A place by its number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<Place> {
        self.list.get(number as usize).copied()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Numbers of the places of a section's symbols.
    pub(crate) fn of(&mut self, section: &Section) -> Vec<u32> {
        section.symbols.iter().map(|s| self.number(Place::of(section, s))).collect()
    }

    fn number(&mut self, place: Place) -> u32 {
        let Self { list, numbers } = self;
        *numbers.entry(place).or_insert_with(|| {
            list.push(place);
            narrow(list.len() - 1)
        })
    }
}
