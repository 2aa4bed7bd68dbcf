//! Taking back what turned one value into another, after more has changed.
//!
//! Places that names alone lead to are the same nodes for ever, so it can be told from values
//! what becomes of them. Elements are not: arrays that differ are left open.

use super::{Json, Refusal};

type Result<T> = std::result::Result<T, Refusal>;
type Fields = Vec<(String, Json)>;

impl Json {
    /// What this becomes when the change from `before` to `after` is taken back; `Taken` if any of
    /// it has changed since. None if that depends on elements.
    pub(crate) fn undone(&self, before: &Self, after: &Self) -> Option<Result<Self>> {
        if before == after {
            return Some(Ok(self.clone()));
        }
        match (self, before, after) {
            (Self::Object(now), Self::Object(before), Self::Object(after)) => {
                Some(undone_members(now, before, after)?.map(Self::Object))
            }
            (_, Self::Object(_), Self::Object(_)) => Some(Err(Refusal::Taken)),
            (_, Self::Array(_), Self::Array(_)) => None,
            (now, ..) if now != after => Some(Err(Refusal::Taken)),
            _ => Some(Ok(before.clone())),
        }
    }
}

fn undone_members(now: &Fields, before: &Fields, after: &Fields) -> Option<Result<Fields>> {
    let mut is_known = true;
    let mut fields = now.clone();
    for (name, old) in before {
        let (new, present) = (member(after, name), member(now, name));
        let undone = match (new, present) {
            (None, None) => {
                fields.push((name.clone(), old.clone()));
                continue;
            }
            (Some(new), _) if new == old => continue,
            (None, Some(_)) | (Some(_), None) => return Some(Err(Refusal::Taken)),
            (Some(new), Some(present)) => present.undone(old, new),
        };
        match undone {
            None => is_known = false,
            Some(Err(refusal)) => return Some(Err(refusal)),
            Some(Ok(value)) => {
                fields.iter_mut().filter(|field| field.0 == *name).for_each(|field| {
                    field.1 = value.clone();
                });
            }
        }
    }
    let mut added = after.iter().filter(|(name, _)| member(before, name).is_none());
    if added.any(|(name, new)| member(now, name) != Some(new)) {
        return Some(Err(Refusal::Taken));
    }
    let Some(order) = undone_order(&names(now), &names(before), &names(after)) else {
        return Some(Err(Refusal::Taken));
    };
    let take = |name: &&str| {
        let value = member(&fields, name).expect("it is there, or came back");
        ((*name).to_owned(), value.clone())
    };
    is_known.then(|| Ok(order.iter().map(take).collect()))
}

/// The order of members once that of `before` has come back; none if both that change and later
/// ones ordered them anew.
fn undone_order<'j>(
    now: &[&'j str],
    before: &[&'j str],
    after: &[&'j str],
) -> Option<Vec<&'j str>> {
    if before == after {
        return Some(now.to_vec());
    }
    let has = |list: &[&str], name: &str| list.contains(&name);
    if is_one_order(before, after) {
        let is_kept = |name: &&&str| has(before, name) || !has(after, name);
        let base = now.iter().filter(is_kept).copied().collect();
        return Some(woven(base, before, |name| !has(after, name)));
    }
    if !is_one_order(after, now) {
        return None;
    }
    let is_left = |name: &&&str| !has(after, name) || has(now, name);
    let base = before.iter().filter(is_left).copied().collect();
    Some(woven(base, now, |name| !has(after, name) && !has(before, name)))
}

/// The names of `base`, with those of `order` that are `more` each behind the one that it follows.
fn woven<'j>(
    mut base: Vec<&'j str>,
    order: &[&'j str],
    more: impl Fn(&str) -> bool,
) -> Vec<&'j str> {
    let mut at = 0;
    for name in order {
        if let Some(there) = base.iter().position(|other| other == name) {
            at = there + 1;
        } else if more(name) {
            base.insert(at, name);
            at += 1;
        }
    }
    base
}

fn is_one_order(a: &[&str], b: &[&str]) -> bool {
    a.iter().filter(|name| b.contains(name)).eq(b.iter().filter(|name| a.contains(name)))
}

fn names(fields: &Fields) -> Vec<&str> {
    fields.iter().map(|(name, _)| name.as_str()).collect()
}

fn member<'j>(fields: &'j Fields, name: &str) -> Option<&'j Json> {
    fields.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(before: &str, after: &str, now: &str) -> String {
        let [before, after, now] = [before, after, now].map(Json::parse);
        match now.undone(&before, &after) {
            None => "open".to_owned(),
            Some(Err(refusal)) => format!("{refusal:?}"),
            Some(Ok(value)) => value.to_string(),
        }
    }

    #[test]
    fn only_what_has_changed_since_stands_in_the_way() {
        let (before, after) = (r#"{"a":1,"b":2,"c":3}"#, r#"{"a":9,"c":3,"d":4}"#);
        let now = r#"{"x":0,"a":9,"c":[],"d":4}"#;
        assert_eq!(undone(before, after, now), r#"{"x":0,"a":1,"b":2,"c":[]}"#);
        for now in [r#"{"a":8,"c":3,"d":4}"#, r#"{"a":9,"d":4,"b":0}"#, r#"{"a":9}"#, "[]"] {
            assert_eq!(undone(before, after, now), "Taken", "{now}");
        }
    }

    #[test]
    fn an_order_comes_back_unless_there_is_a_third() {
        let (before, after) = (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#);
        assert_eq!(undone(before, after, r#"{"b":5,"c":3,"a":1}"#), r#"{"a":1,"b":5,"c":3}"#);
        assert_eq!(undone(before, after, before), "Taken");
    }

    #[test]
    fn elements_are_left_open() {
        assert_eq!(undone(r#"{"a":[1]}"#, r#"{"a":[2]}"#, r#"{"a":[2],"b":0}"#), "open");
        assert_eq!(undone(r#"{"a":[1]}"#, r#"{"a":0}"#, r#"{"a":0,"b":0}"#), r#"{"a":[1],"b":0}"#);
    }
}
