//! What is under way, by numbers that are used again.

use st_model::num::narrow;

/// A list whose free numbers are given out first.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    all: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn add(&mut self, item: T) -> u32 {
        if let Some(n) = self.free.pop() {
            self.all[n as usize] = Some(item);
            return n;
        }
        self.all.push(Some(item));
        narrow(self.all.len() - 1)
    }

    pub(crate) fn get(&self, n: u32) -> Option<&T> {
        self.all.get(n as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, n: u32) -> Option<&mut T> {
        self.all.get_mut(n as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, n: u32) -> Option<T> {
        let taken = self.all.get_mut(n as usize)?.take();
        if taken.is_some() {
            self.free.push(n);
        }
        taken
    }

    /// Most that were under way at a time.
    pub(crate) fn most(&self) -> usize {
        self.all.len()
    }
}
