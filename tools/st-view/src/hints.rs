//! What info objects hold, followed through the calls that make and change them: a call that is given one has it as `hints`.

use std::collections::HashMap;

use serde_json::{Map, Value};
use st_model::calls::names;

/// Key of a call's hints.
const HINTS: &str = "hints";

/// The info objects of a process whose contents are known, by number. What a library has filled is not.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    objects: HashMap<u64, Map<String, Value>>,
}

impl Hints {
    /// The process's next call, as an object for people or JSON.
    pub(crate) fn follow(&mut self, call: &mut Map<String, Value>) {
        let number = |key: &str| call.get(key).and_then(Value::as_u64);
        let (given, made) = (number("info"), number("newinfo"));
        if call.contains_key("error") {
            // A number that it has given away all the same is another object's now.
            made.map(|made| self.objects.remove(&made));
            return;
        }
        let name = call.get("call").and_then(Value::as_str).unwrap_or_default();
        let text = |key: &str| call.get(key).and_then(Value::as_str);
        let known = given.and_then(|given| self.objects.get_mut(&given));
        match name {
            names::MPI_Info_set => {
                if let (Some(object), Some(key), Some(value)) = (known, text("key"), text("value")) {
                    object.insert(key.into(), value.into());
                }
            }
            names::MPI_Info_delete => {
                if let (Some(object), Some(key)) = (known, text("key")) {
                    object.shift_remove(key);
                }
            }
            names::MPI_Info_free => {
                number("freeinfo").map(|freed| self.objects.remove(&freed));
            }
            // What happens to them until it goes on is not recorded.
            names::MPI_Pcontrol if call.get("level").and_then(Value::as_i64) == Some(0) => {
                self.objects.clear()
            }
            _ => {
                let hints = known.map(|object| object.clone());
                if let Some(made) = made {
                    let contents = match name {
                        names::MPI_Info_create => Some(Map::new()),
                        names::MPI_Info_dup => hints,
                        _ => None,
                    };
                    self.objects.remove(&made);
                    self.objects.extend(contents.map(|contents| (made, contents)));
                } else if let Some(hints) = hints.filter(|_| !asks(name)) {
                    call.insert(HINTS.into(), hints.into());
                }
            }
        }
    }
}

/// Whether a function is about the info object itself.
fn asks(name: &str) -> bool {
    let all = [
        names::MPI_Info_get,
        names::MPI_Info_get_string,
        names::MPI_Info_get_valuelen,
        names::MPI_Info_get_nkeys,
        names::MPI_Info_get_nthkey,
    ];
    all.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The hints of the last of these calls.
    fn last(calls: &[Value]) -> Option<Value> {
        let mut hints = Hints::default();
        let followed = calls.iter().map(|call| {
            let Value::Object(mut call) = call.clone() else { return None };
            hints.follow(&mut call);
            call.remove(HINTS)
        });
        followed.last().flatten()
    }

    fn set(info: u32, key: &str, value: &str) -> Value {
        json!({"call": "MPI_Info_set", "info": info, "key": key, "value": value})
    }

    #[test]
    fn hints_are_what_the_object_holds_when_it_is_given() {
        let create = |i: u32| json!({"call": "MPI_Info_create", "newinfo": i});
        let open = |i: u32| json!({"call": "MPI_File_open", "info": i});
        let dup = json!({"call": "MPI_Info_dup", "info": 0, "newinfo": 1});
        let changed = [set(0, "a", "1"), set(0, "b", "2"), set(0, "a", "3")];
        let calls = |more: &[Value]| {
            let all: Vec<_> = [create(0)].iter().chain(&changed).chain(more).cloned().collect();
            last(&all)
        };
        assert_eq!(calls(&[open(0)]), Some(json!({"a": "3", "b": "2"})));
        // A copy goes its own way.
        let delete = json!({"call": "MPI_Info_delete", "info": 1, "key": "a"});
        assert_eq!(calls(&[dup.clone(), delete.clone(), open(1)]), Some(json!({"b": "2"})));
        assert_eq!(calls(&[dup.clone(), delete, open(0)]), Some(json!({"a": "3", "b": "2"})));
        // The number is another object's then.
        let free = json!({"call": "MPI_Info_free", "freeinfo": 0});
        assert_eq!(calls(&[free.clone(), open(0)]), None);
        assert_eq!(calls(&[free, create(0), open(0)]), Some(json!({})));
    }

    #[test]
    fn what_is_not_known_has_no_hints() {
        let open = json!({"call": "MPI_File_open", "info": 0});
        assert_eq!(last(&[set(0, "a", "1"), open.clone()]), None);
        let got = json!({"call": "MPI_File_get_info", "file": "f", "newinfo": 0});
        assert_eq!(last(&[got, set(0, "a", "1"), open]), None);
        let create = json!({"call": "MPI_Info_create", "newinfo": 0});
        let failed = json!({"call": "MPI_Info_set", "info": 0, "key": "a", "value": "1", "error": "MPI_ERR_INFO_VALUE"});
        let window = json!({"call": "MPI_Win_create", "info": 0});
        assert_eq!(last(&[create.clone(), failed, window]), Some(json!({})));
        let none = json!({"call": "MPI_Win_create", "info": null});
        assert_eq!(last(&[create.clone(), none]), None);
        let pause = json!({"call": "MPI_Pcontrol", "level": 0});
        assert_eq!(last(&[create, pause, json!({"call": "MPI_Win_create", "info": 0})]), None);
    }
}
