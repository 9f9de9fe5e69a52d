//! Rows of the call table's text with one thing changed.

/// A row's text in its parts; of one that is like another nothing can be changed apart.
#[derive(Clone)]
pub(crate) struct Line {
    number: String,
    pub(crate) name: String,
    params: Vec<String>,
    after: Vec<String>,
}

const PROPERTIES: [&str; 7] = ["poll", "fold", "start", "local", "unplayed", "asks", "files"];
/// Words of kinds.
const KINDS: &str = "init finalize send ssend receive sendrecv mprobe mrecv restart free complete barrier bcast gather scatter \
    allgather alltoall reduce allreduce reduce_scatter scan exscan neighbor_allgather neighbor_alltoall creation \
    abort probe buffer duplicate intercomm group_creation cart cart_sub graph dist_graph adjacent connect parent comm_free win_attach \
    type_lookup close win_fence win_post win_start win_complete win_wait win_lock win_free put get get_put compare_swap read write";
/// Roles that can be taken for each other.
const ROLES: [(&str, &str); 16] = [
    ("dest", "source"),
    ("dest", "tag"),
    ("root", "dest"),
    ("root", "source"),
    ("count", "int"),
    ("count", "rootcount"),
    ("counts", "rootcounts"),
    ("displs", "rootdispls"),
    ("type", "roottype"),
    ("type", "op"),
    ("tag", "int"),
    ("comm", "group"),
    ("comm", "win"),
    ("flag", "type"),
    ("newcomm", "comm"),
    ("newrequest", "status"),
];

/// The name of a parameter, and its role with the length of an array.
fn parts(param: &str) -> (&str, &str) {
    param.split_once('=').unwrap_or_else(|| (param.split('[').next().unwrap_or(param), param))
}

impl Line {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (head, tail) = text.split_once(';').unwrap_or((text, ""));
        let mut words = head.split_whitespace().map(str::to_owned);
        let (number, name) = (words.next().filter(|n| !n.starts_with('#'))?, words.next()?);
        let params: Vec<String> = words.collect();
        let after = tail.split_whitespace().map(str::to_owned).collect();
        (params.first().is_none_or(|p| p != "like")).then_some(Self { number, name, params, after })
    }

    pub(crate) fn text(&self) -> String {
        let Self { number, name, params, after } = self;
        format!("{number} {name} {} ; {}", params.join(" "), after.join(" "))
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut changed = self.clone();
        change(&mut changed);
        changed
    }

    /// Changes of what stands after its `;`, and what they are.
    pub(crate) fn words_changed(&self) -> Vec<(String, Self)> {
        let mut all = self.other_kinds();
        for property in PROPERTIES {
            let had = self.after.iter().any(|w| w == property);
            all.push((
                format!("{property} {}", if had { "dropped" } else { "added" }),
                self.with(|l| {
                    l.after.retain(|w| w != property);
                    l.after.extend((!had).then(|| property.to_owned()));
                }),
            ));
        }
        all
    }

    /// Changes of its parameters.
    pub(crate) fn params_changed(&self) -> Vec<(String, Self)> {
        [self.other_names(), self.other_roles()].concat()
    }

    fn other_kinds(&self) -> Vec<(String, Self)> {
        let is_kind = |word: &String| !PROPERTIES.contains(&word.as_str());
        let own = self.after.iter().find(|w| is_kind(w)).cloned();
        let others = KINDS.split_whitespace().map(|k| Some(k.to_owned())).chain([None]);
        let change = |kind: Option<String>| {
            let what = format!(
                "{} instead of {}",
                kind.as_deref().unwrap_or("no kind"),
                own.as_deref().unwrap_or("none")
            );
            let changed = self.with(|l| {
                l.after.retain(|w| !is_kind(w));
                l.after.extend(kind);
            });
            (what, changed)
        };
        others.filter(|kind| *kind != own).map(change).collect()
    }

    /// Each two names exchanged, where both are recorded.
    fn other_names(&self) -> Vec<(String, Self)> {
        let mut all = Vec::new();
        let recorded = |i: &usize| self.params[*i] != "_";
        for a in (0..self.params.len()).filter(recorded) {
            for b in (a + 1..self.params.len()).filter(recorded) {
                let ((first, of_first), (second, of_second)) =
                    (parts(&self.params[a]), parts(&self.params[b]));
                let changed = self.with(|l| {
                    l.params[a] = format!("{second}={of_first}");
                    l.params[b] = format!("{first}={of_second}");
                });
                all.push((format!("{first} and {second} exchanged"), changed));
            }
        }
        all
    }

    fn other_roles(&self) -> Vec<(String, Self)> {
        let mut all = Vec::new();
        for (i, param) in self.params.iter().enumerate() {
            let (name, role) = parts(param);
            let (bare, length) = role.find('[').map_or((role, ""), |at| role.split_at(at));
            let others = ROLES.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).filter(|(of, _)| *of == bare);
            for (_, other) in others {
                let changed = self.with(|l| l.params[i] = format!("{name}={other}{length}"));
                all.push((format!("{name} is {other} instead of {bare}"), changed));
            }
        }
        all
    }
}
