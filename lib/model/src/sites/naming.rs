//! How call sites are called wherever they are printed: by number, and by the place that tells them apart.
//!
//! Of a site's stack, frames of MPI, of its bindings and of language runtimes are left out ([`super::layers`]), and those of
//! wrappers: functions named after the MPI function that they call, and layers, which are files whose functions make one
//! MPI call each and of which one is called from several places, or most are called as MPI's functions are. The place is the innermost frame of what is left
//! at which a site's stack differs from those of all others. Sites whose stacks do not differ there, as two calls on
//! one line, have one place and several numbers.

mod meant;

pub use meant::Meaning;

use crate::num::{Exact, narrow};
use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::FixedState;

use super::abbreviated::{abbreviated, concise};
use super::{Frame, SiteTable, layers};
use crate::modules::python_function;
use crate::names::Location;

/// The call sites of a whole trace, numbered in the order in which its sections have them.
#[derive(Clone, Debug, Default)]
pub struct CallSites {
    table: SiteTable,
    /// By site: where it is.
    places: Vec<String>,
    /// By site: the same in parts, as far as they are known.
    locations: Vec<Option<Location>>,
    /// By site: hashes of what its own functions are called, with and without lines, if that is known of all.
    identities: Vec<[Option<u128>; 2]>,
    /// By site: other texts that stand for it.
    others: Vec<Vec<String>>,
}

/// A function of a site's stack, as far as it matters here; texts by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NamedFrame {
    /// The whole text.
    text: u32,
    /// The function, or the text if that is not known.
    function: u32,
    /// The file that it is in, or the module if that is not known.
    layer: u32,
    /// Whether it is the program's: no library below it, no wrapper.
    own: bool,
    /// Whether it is a wrapper.
    wrapper: bool,
    /// Whether it is called as an MPI function is.
    named_after: bool,
}

impl NamedFrame {
    fn has_function(&self) -> bool {
        self.function != self.text
    }
}

/// Between a place and what it calls there, where only that tells sites apart.
const VIA: &str = " via ";

/// Texts by number.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    /// Those that are files and lines.
    named: HashSet<u32, FixedState>,
    locations: HashMap<u32, Location, FixedState>,
    /// How those read that are shown without what functions take.
    short: HashMap<u32, String, FixedState>,
    index: HashMap<String, u32, FixedState>,
}

impl Texts {
    fn number(&mut self, text: String) -> u32 {
        let next = narrow(self.all.len());
        *self.index.entry(text).or_insert_with_key(|text| {
            self.all.push(text.clone());
            next
        })
    }
    fn is_named(&self, number: u32) -> bool {
        self.named.contains(&number)
    }
    fn get(&self, number: u32) -> &str {
        self.all.get(number.to_usize()).map_or("", String::as_str)
    }
    /// A text as it is shown.
    fn short(&self, number: u32) -> &str {
        self.short.get(&number).map_or_else(|| self.get(number), String::as_str)
    }
    fn shorten(&mut self, number: u32, short: String) {
        if self.get(number) != short {
            self.short.insert(number, short);
        }
    }
    fn hash(&self, of: impl Iterator<Item = u32>) -> u128 {
        let all: Vec<&str> = of.map(|number| self.short(number)).collect();
        xxhash_rust::xxh3::xxh3_128(all.join("\n").as_bytes())
    }
}

impl CallSites {
    /// The sites of sections' tables, in their order ([`SiteTable::united`]), with what these say of names.
    #[must_use]
    pub fn of<'a>(tables: impl IntoIterator<Item = &'a SiteTable>) -> Self {
        Self::new(SiteTable::united(tables))
    }

    /// Finds the places of a table's sites. *Cost:* O(frames of all sites).
    #[must_use]
    pub fn new(table: SiteTable) -> Self {
        let mut all = Self { table, ..Self::default() };
        all.find_places();
        all
    }

    /// All sites, by number.
    #[must_use]
    pub fn table(&self) -> &SiteTable {
        &self.table
    }
    /// Number of sites.
    #[must_use]
    pub fn len(&self) -> u32 {
        narrow(self.places.len())
    }
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
    /// Number of a site by its identity.
    #[must_use]
    pub fn number(&self, id: u128) -> Option<u32> {
        self.table.number(id)
    }
    /// Number of each of a section's sites, in its order.
    #[must_use]
    pub fn numbers(&self, of: &SiteTable) -> Vec<u32> {
        of.sites().iter().map(|site| self.number(site.id).unwrap_or(u32::MAX)).collect()
    }
    /// Where a site is, as `exchange stencil.c:120`: its label, or the innermost function that tells it apart. Empty where nothing
    /// is known of it.
    #[must_use]
    pub fn place(&self, number: u32) -> &str {
        self.places.get(number.to_usize()).map_or("", String::as_str)
    }
    /// Function, file and line of a site's place, as far as they are known: the function in full.
    #[must_use]
    pub fn location(&self, number: u32) -> Option<&Location> {
        self.locations.get(number.to_usize())?.as_ref()
    }
    /// A place without what it calls there, if it has that: as much of it as tells where to look.
    #[must_use]
    pub fn apart(&self, number: u32) -> Option<&str> {
        self.place(number).split_once(VIA).map(|(place, _)| place)
    }
    /// A site as sentences name it: `site 3, exchange stencil.c:120`.
    #[must_use]
    pub fn describe(&self, number: u32) -> String {
        match self.place(number) {
            "" => format!("site {number}"),
            place => format!("site {number}, {place}"),
        }
    }
    /// What stands for a site in other builds of its program: hash of the functions, files and lines of its stack outside of wrappers;
    /// nothing if some are not known.
    #[must_use]
    pub fn by_name(&self, number: u32) -> Option<u128> {
        self.identities.get(number.to_usize())?[0]
    }
    /// What stands for a site in other versions of its program, where lines have moved: hash of the functions of its stack outside of
    /// wrappers. Several sites may have one; nothing if some functions are not known.
    #[must_use]
    pub fn by_functions(&self, number: u32) -> Option<u128> {
        self.identities.get(number.to_usize())?[1]
    }
    /// All functions of a site's stack, innermost first, inlined ones included.
    #[must_use]
    pub fn stack(&self, number: u32) -> Vec<String> {
        let Some(site) = self.table.get(number) else { return Vec::new() };
        if site.frames.is_empty() {
            return vec![site.label.clone()];
        }
        let text = |f: &Frame| -> Vec<String> {
            let module = self.table.module_of(f).cloned().unwrap_or_default();
            of_frame(&self.table, f).iter().map(|l| l.text(&module, f.offset)).collect()
        };
        site.frames.iter().flat_map(text).collect()
    }
    /// All texts that stand for a frame.
    fn names_of(&self, f: &Frame) -> Vec<String> {
        let Some(module) = self.table.module_of(f) else { return Vec::new() };
        let mut all =
            vec![format!("{}+{:#x}", module.name(), f.offset), format!("{}+{:#x}", module.path, f.offset)];
        all.extend(of_frame(&self.table, f).iter().flat_map(|l| words(l, l.text(module, f.offset))));
        all
    }

    fn find_places(&mut self) {
        let mut texts = Texts::default();
        let stacks = stacks(&self.table, &mut texts);
        let layers = wrapper_layers(&stacks);
        let kept: Vec<Vec<NamedFrame>> = stacks.iter().map(|stack| trail(stack, &layers)).collect();
        let trails: Vec<Vec<u32>> = kept.iter().map(|steps| steps.iter().map(|s| s.text).collect()).collect();
        let chosen = chosen(&trails);
        // Different stacks may come through one line: what they call there tells them apart.
        let mut inner: HashMap<u32, HashSet<u32, FixedState>, FixedState> = HashMap::default();
        for (trail, at) in trails.iter().zip(&chosen) {
            if let (Some(first), Some(text)) = (trail.first(), trail.get(*at)) {
                inner.entry(*text).or_default().insert(*first);
            }
        }
        for (((trail, steps), at), site) in trails.iter().zip(&kept).zip(&chosen).zip(self.table.sites()) {
            let text = |number: &u32| abbreviated(texts.short(*number));
            let place = match (trail.first(), trail.get(*at)) {
                _ if !site.label.is_empty() => site.label.clone(),
                (Some(first), Some(chosen))
                    if inner.get(chosen).is_some_and(|i| i.len() > 1) && first != chosen =>
                {
                    [text(chosen), text(first)].join(VIA)
                }
                (_, chosen) => chosen.map(text).unwrap_or_default(),
            };
            self.places.push(place);
            let location = trail.get(*at).filter(|_| site.label.is_empty());
            self.locations.push(location.and_then(|text| texts.locations.get(text).cloned()));
            let nameless = !site.label.is_empty() || trail.is_empty();
            let lines = trail.iter().all(|t| texts.is_named(*t)).then(|| texts.hash(trail.iter().copied()));
            let functions = steps
                .iter()
                .all(NamedFrame::has_function)
                .then(|| texts.hash(steps.iter().map(|s| s.function)));
            self.identities.push([lines, functions].map(|id| id.filter(|_| !nameless)));
        }
        self.others = self
            .table
            .sites()
            .iter()
            .map(|site| {
                let own =
                    |f: &&Frame| self.table.module_of(f).is_some_and(|m| layers::is_own_module(&m.path));
                let frames = site.frames.first().into_iter().chain(site.frames.iter().find(own));
                frames.flat_map(|f| self.names_of(f)).collect()
            })
            .collect();
    }
}

/// The names of a frame of a site; of one that has none a location that says nothing, so that there is always one. Frames of
/// Python programs name themselves.
fn of_frame(sites: &SiteTable, frame: &Frame) -> Vec<Location> {
    let module = sites.module_of(frame);
    if let Some((file, function)) = module.and_then(|m| python_function(&m.path)) {
        let line = u32::try_from(frame.offset).ok();
        let (function, file) = (Some(function.into()), Some(file.into()));
        return vec![Location { function, displacement: None, file, line }];
    }
    let known = module.and_then(|m| sites.names().get((m.key(), frame.offset)));
    known.map_or_else(|| vec![Location::default()], <[Location]>::to_vec)
}

/// The texts that stand for a location.
fn words(location: &Location, text: String) -> Vec<String> {
    let mut all = vec![abbreviated(&text), text];
    all.extend(location.source());
    all.extend(
        location
            .file
            .iter()
            .map(|f| location.line.map_or_else(|| f.to_string(), |line| format!("{f}:{line}"))),
    );
    all
}

/// The steps of each site, innermost first.
fn stacks(table: &SiteTable, texts: &mut Texts) -> Vec<Vec<NamedFrame>> {
    let mut known: HashMap<Frame, Vec<NamedFrame>, FixedState> = HashMap::default();
    let mut all = Vec::with_capacity(table.sites().len());
    for site in table.sites() {
        let mut stack = Vec::new();
        for frame in &site.frames {
            stack.extend_from_slice(known.entry(*frame).or_insert_with(|| steps(table, frame, texts)));
        }
        all.push(stack);
    }
    all
}

fn steps(table: &SiteTable, frame: &Frame, texts: &mut Texts) -> Vec<NamedFrame> {
    let module = table.module_of(frame).cloned().unwrap_or_default();
    let own_module = layers::is_own_module(&module.path);
    let step = |l: &Location| {
        let text = texts.number(l.text(&module, frame.offset));
        if l.line.is_some() {
            texts.named.insert(text);
        }
        if l.function.is_some() || l.file.is_some() {
            texts.locations.insert(text, l.clone());
        }
        let function = l.function.as_deref();
        let short = function.map(concise);
        if let Some(name) = &short {
            let shown = Location { function: Some(name.as_str().into()), ..l.clone() };
            texts.shorten(text, shown.text(&module, frame.offset));
        }
        let named = |(name, short): (&str, String)| {
            let number = texts.number(name.to_owned());
            texts.shorten(number, short);
            number
        };
        NamedFrame {
            text,
            function: function.zip(short).map_or(text, named),
            layer: texts.number(l.file.as_deref().unwrap_or(&module.path).to_owned()),
            own: own_module && function.is_none_or(layers::is_own_function),
            wrapper: function.is_some_and(layers::wraps_mpi),
            named_after: function.is_some_and(layers::is_named_after_mpi),
        }
    };
    of_frame(table, frame).iter().map(step).collect()
}

/// The layers all of whose functions make one MPI call, if one of them is called from several places or most are called as MPI's
/// functions are, and something outside of it calls each. One function that is called from several places is no layer: its callers are told apart anyhow.
fn wrapper_layers(stacks: &[Vec<NamedFrame>]) -> HashSet<u32> {
    #[derive(Default)]
    struct Layer {
        /// By function: the places of its MPI calls, and where these are called from.
        functions: BTreeMap<u32, (HashSet<u32>, HashSet<u32>)>,
        /// Those called as MPI's functions are.
        named_after: HashSet<u32>,
        is_outermost: bool,
    }
    let mut all: BTreeMap<u32, Layer> = BTreeMap::new();
    for stack in stacks {
        let mut own = stack.iter().filter(|s| s.own && !s.wrapper);
        let Some(first) = own.next() else { continue };
        let layer = all.entry(first.layer).or_default();
        let next = own.next();
        if first.named_after {
            layer.named_after.insert(first.function);
        }
        let (places, callers) = layer.functions.entry(first.function).or_default();
        places.insert(first.text);
        callers.extend(next.map(|s| s.text));
        layer.is_outermost |=
            next.is_none_or(|s| s.layer == first.layer) && own.all(|s| s.layer == first.layer);
    }
    let wraps = |l: &Layer| {
        let single = l.functions.values().all(|(places, _)| places.len() == 1);
        let shared = l.functions.values().any(|(_, callers)| callers.len() > 1);
        let named = 2 * l.named_after.len() > l.functions.len();
        !l.is_outermost && l.functions.len() > 1 && single && (shared || named)
    };
    all.into_iter().filter(|(_, l)| wraps(l)).map(|(layer, _)| layer).collect()
}

/// A stack's own functions outside of wrappers; of those in wrappers if there are no others; else of all.
fn trail(stack: &[NamedFrame], layers: &HashSet<u32>) -> Vec<NamedFrame> {
    let mut own: Vec<NamedFrame> = stack.iter().copied().filter(|s| s.own).collect();
    let outside = own.iter().position(|s| !s.wrapper && !layers.contains(&s.layer));
    own.drain(..outside.unwrap_or(0));
    if own.is_empty() { stack.to_vec() } else { own }
}

/// By trail: the first position at which it differs from all others that are not equal to it.
fn chosen(trails: &[Vec<u32>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..trails.len()).collect();
    order.sort_by_key(|i| &trails[*i]);
    let mut chosen = vec![0; trails.len()];
    let groups: Vec<&[usize]> = order.chunk_by(|a, b| trails[*a] == trails[*b]).collect();
    let common = |a: &[usize], b: &[usize]| {
        let (a, b) = (&trails[a[0]], &trails[b[0]]);
        a.iter().zip(b).take_while(|(x, y)| x == y).count()
    };
    for (i, group) in groups.iter().enumerate() {
        // Of sorted lists, those that begin alike are neighbours.
        let before = i.checked_sub(1).map_or(0, |j| common(groups[j], group));
        let after = groups.get(i + 1).map_or(0, |next| common(group, next));
        for site in *group {
            chosen[*site] = before.max(after).min(trails[*site].len().saturating_sub(1));
        }
    }
    chosen
}

#[cfg(test)]
mod tests;
