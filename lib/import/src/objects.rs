//! What the objects of a source are, by their names there.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::FixedState;
use st_model::calls::{CallId, Object};
use st_model::objects::{
    Comm, Content, Group, Name, Named, Objects, Op, Registry, SharedObject, Type, family_of_predefined,
    name_of,
};
use st_model::ranklist::RankList;
use xxhash_rust::xxh3::Xxh3;

/// What an object is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Definition {
    /// A communicator.
    Comm(Comm),
    /// A group.
    Group(Group),
    /// A datatype.
    Type(Type),
    /// An operation.
    Op(Op),
    /// A window.
    Win(SharedObject),
    /// A file.
    File(SharedObject),
}

impl Definition {
    fn object(&self) -> Object {
        match self {
            Self::Comm(_) => Object::Comm,
            Self::Group(_) => Object::Group,
            Self::Type(_) => Object::Type,
            Self::Op(_) => Object::Op,
            Self::Win(_) => Object::Win,
            Self::File(_) => Object::File,
        }
    }

    /// The same window or file, whose only member is a rank.
    fn alone(&self, rank: u32) -> Self {
        let mut own = self.clone();
        if let Self::Win(of) | Self::File(of) = &mut own {
            of.members = std::iter::once(rank).collect();
        }
        own
    }
}

/// An object of a name: for which ranks, all if there are none, which copy, and what.
type Defined = (Option<RankList>, u32, Definition);

/// The objects of a name.
#[derive(Debug, Default)]
struct Homonyms {
    /// Those of one rank alone, of which there may be one for each (`MPI_COMM_SELF`).
    of_one: HashMap<u32, (u32, Definition), FixedState>,
    of_more: Vec<Defined>,
    /// What every rank has for itself.
    of_each: Option<Definition>,
}

/// All that is defined, by kind and name.
#[derive(Debug, Default)]
pub(crate) struct Definitions([HashMap<String, Homonyms, FixedState>; KINDS]);

/// Kinds of objects.
pub(crate) const KINDS: usize = 7;

/// Number of a kind.
pub(crate) fn kind(object: Object) -> usize {
    match object {
        Object::Comm => 0,
        Object::Group => 1,
        Object::Type => 2,
        Object::Op => 3,
        Object::Win => 4,
        Object::File => 5,
        Object::Text => 6,
    }
}

impl Definitions {
    /// Says what a name stands for on some ranks, or all. What was said first holds.
    pub(crate) fn add(&mut self, name: &str, ranks: Option<RankList>, copy: u32, what: Definition) {
        let known = self.0[kind(what.object())].entry(name.to_owned()).or_default();
        match ranks.as_ref().filter(|ranks| ranks.len() == 1).and_then(RankList::lowest) {
            Some(rank) => drop(known.of_one.entry(rank).or_insert((copy, what))),
            None => known.of_more.push((ranks, copy, what)),
        }
    }

    /// Says that a name stands for a window or file that each rank has for itself. What was said first holds.
    pub(crate) fn add_alone(&mut self, name: &str, what: Definition) {
        let known = self.0[kind(what.object())].entry(name.to_owned()).or_default();
        known.of_each.get_or_insert(what);
    }

    /// What a name stands for on a rank, and which copy that is.
    pub(crate) fn find(&self, object: Object, name: &str, rank: u32) -> Option<(u32, Cow<'_, Definition>)> {
        let known = self.0[kind(object)].get(name)?;
        if let Some((copy, what)) = known.of_one.get(&rank) {
            return Some((*copy, Cow::Borrowed(what)));
        }
        let own = |(ranks, _, _): &&Defined| ranks.as_ref().is_none_or(|ranks| ranks.contains(rank));
        let of_more = known.of_more.iter().find(own).map(|(_, copy, what)| (*copy, Cow::Borrowed(what)));
        of_more.or_else(|| Some((0, Cow::Owned(known.of_each.as_ref()?.alone(rank)))))
    }
}

/// Numbers of objects by family and name.
type Entered = HashMap<(u128, Name), i64, FixedState>;

/// The objects of a rank, by name.
#[derive(Debug, Default)]
pub(crate) struct Known {
    indices: [HashMap<String, i64, FixedState>; KINDS],
    /// Objects that a function has made from a place.
    made: HashMap<(CallId, u128), u32, FixedState>,
    /// By kind.
    entered: [Entered; KINDS],
}

impl Known {
    pub(crate) fn find(&self, object: Object, name: &str) -> Option<i64> {
        self.indices[kind(object)].get(name).copied()
    }

    /// Enters an object that is met for the first time, in a call from a place that makes it or only uses it. Its number.
    pub(crate) fn enter(
        &mut self,
        name: &str,
        copy: u32,
        what: &Definition,
        maker: Option<(CallId, u128)>,
        to: &mut Objects,
    ) -> i64 {
        // Wherever the program's text does the same thing, it is one family: the n-th object of a place.
        let family = maker.map(|(call, site)| {
            let n = self.made.entry((call, site)).or_insert(0);
            let mut h = Xxh3::new();
            h.update(&call.0.to_le_bytes());
            h.update(&site.to_le_bytes());
            h.update(&n.to_le_bytes());
            *n = n.saturating_add(1);
            h.digest128()
        });
        let kind = kind(what.object());
        let entered = &mut self.entered[kind];
        let index = match what {
            Definition::Comm(content) => add(&mut to.comms, family, copy, content, entered),
            Definition::Group(content) => add(&mut to.groups, family, copy, content, entered),
            Definition::Type(content) => add(&mut to.types, family, copy, content, entered),
            Definition::Op(content) => add(&mut to.ops, family, copy, content, entered),
            Definition::Win(content) => add(&mut to.wins, family, copy, content, entered),
            Definition::File(content) => add(&mut to.files, family, copy, content, entered),
        };
        self.indices[kind].insert(name.to_owned(), index);
        index
    }
}

fn add<T: Content + Clone>(
    to: &mut Registry<T>,
    family: Option<u128>,
    copy: u32,
    content: &T,
    entered: &mut Entered,
) -> i64 {
    let family = family.unwrap_or_else(|| family_of_predefined(content));
    let name = name_of(content.digest(), copy);
    let adopt = || to.adopt(family, Named { name, copy, content: content.clone() });
    *entered.entry((family, name)).or_insert_with(adopt)
}
