//! Values of predefined attributes, which the run has once: a call that asks `MPI_COMM_WORLD` for one has it as `attribute`.

use serde_json::{Map, Value};
use st_model::calls::names;
use st_model::header::{ATTRIBUTES, Header};

/// Adds the value to a call, as an object for people or JSON, that has found it.
pub(crate) fn add(call: &mut Map<String, Value>, header: &Header) {
    let is = |key: &str, value: &Value| call.get(key) == Some(value);
    let asks = [names::MPI_Comm_get_attr, names::MPI_Attr_get].iter().any(|name| is("call", &(*name).into()));
    if !asks || !is("comm", &"MPI_COMM_WORLD".into()) || !is("flag", &true.into()) {
        return;
    }
    let known = header.options.get(ATTRIBUTES);
    let key = call.get("keyval").and_then(Value::as_str);
    if let Some(value) = key.and_then(|key| known?.get(key)) {
        call.insert("attribute".into(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_world_was_asked_for_and_has_is_told() {
        let mut header = Header::default();
        header.options.insert(ATTRIBUTES.into(), json!({"MPI_TAG_UB": 7}));
        let value = |comm: &str, keyval: Value, flag: bool| {
            let call = json!({"call": "MPI_Comm_get_attr", "comm": comm, "keyval": keyval, "flag": flag});
            let Value::Object(mut call) = call else { return None };
            add(&mut call, &header);
            call.remove("attribute")
        };
        assert_eq!(value("MPI_COMM_WORLD", "MPI_TAG_UB".into(), true), Some(7.into()));
        assert_eq!(value("MPI_COMM_SELF", "MPI_TAG_UB".into(), true), None);
        assert_eq!(value("MPI_COMM_WORLD", "MPI_TAG_UB".into(), false), None);
        assert_eq!(value("MPI_COMM_WORLD", "MPI_APPNUM".into(), true), None);
        assert_eq!(value("MPI_COMM_WORLD", 0.into(), true), None);
    }
}
