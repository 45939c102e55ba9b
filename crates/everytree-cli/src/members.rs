//! The members of a model, in words and as JSON.

use everytree::{Member, Model, plural};
use serde_json::{Value, json};

/// What a member is: `directed forests, 4 components, 12 blocks`.
pub fn member_words(member: &Member) -> String {
    let mut words = member.title.to_owned();
    if member.components > 1 {
        words += &format!(", {}", plural(member.components, "component"));
    }
    if let Some(count) = member.hidden {
        words += &format!(", {}", plural(count, "hidden state"));
    }
    if let Some(count) = member.blocks {
        words += &format!(", {}", plural(count, "block"));
    }
    if let Some(count) = member.rows {
        words += &format!(", {}", plural(count, "row"));
    }
    words
}

/// What everyone should know about a model that contains rows.
pub fn stored(model: &Model) -> Option<String> {
    let rows = plural(model.stored_rows()?, "distinct training row");
    Some(format!("the model contains {rows}: whoever has its file can read them"))
}

/// What a model is, in a few words.
pub fn in_words(model: &Model) -> String {
    match &model.members()[..] {
        [member] => member_words(member),
        several => format!("an average of {}", plural(several.len(), "model")),
    }
}

/// A line for each member of an ensemble, the largest weight first.
pub fn lines(model: &Model) -> Vec<String> {
    let mut members = model.members();
    members.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let line = |member: &Member| {
        let parameters = plural(member.parameters, "parameter");
        format!("  {:.3}  {}, {parameters}", member.weight, member_words(member))
    };
    members.iter().map(line).collect()
}

/// Adds what is true of the one member of a model, or of each of several.
pub fn describe(model: &Model, object: &mut Value) {
    let members = model.members();
    let of = |member: &Member, object: &mut Value| {
        if let Some(count) = member.hidden {
            object["hidden"] = json!(count);
        }
        if let Some(count) = member.blocks {
            object["blocks"] = json!(count);
        }
        if let Some(count) = member.rows {
            object["stored_rows"] = json!(count);
        }
    };
    match &members[..] {
        [member] => of(member, object),
        several => {
            let one = |member: &Member| {
                let mut object = json!({
                    "family": member.family,
                    "components": member.components,
                    "weight": member.weight,
                    "parameters": member.parameters,
                });
                of(member, &mut object);
                object
            };
            object["members"] = json!(several.iter().map(one).collect::<Vec<_>>());
        }
    }
}
