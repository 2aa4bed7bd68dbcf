//! The cases in which serde's `rename_all` writes the names of fields.

/// A case of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Snake,
    Camel,
    Pascal,
    Kebab,
    ScreamingSnake,
    ScreamingKebab,
    Upper,
}

impl Case {
    /// The case with the name that serde has for it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "snake_case" | "lowercase" => Self::Snake,
            "camelCase" => Self::Camel,
            "PascalCase" => Self::Pascal,
            "kebab-case" => Self::Kebab,
            "SCREAMING_SNAKE_CASE" => Self::ScreamingSnake,
            "SCREAMING-KEBAB-CASE" => Self::ScreamingKebab,
            "UPPERCASE" => Self::Upper,
            _ => return None,
        })
    }

    /// The name of a field, which is in snake case, in this case.
    pub(crate) fn apply(self, field: &str) -> String {
        match self {
            Self::Snake => field.to_owned(),
            Self::Kebab => field.replace('_', "-"),
            Self::ScreamingSnake | Self::Upper => field.to_ascii_uppercase(),
            Self::ScreamingKebab => field.to_ascii_uppercase().replace('_', "-"),
            Self::Camel | Self::Pascal => {
                let mut name = String::with_capacity(field.len());
                let mut is_capital = self == Self::Pascal;
                for letter in field.chars() {
                    if letter == '_' {
                        is_capital = true;
                    } else if std::mem::take(&mut is_capital) {
                        name.push(letter.to_ascii_uppercase());
                    } else {
                        name.push(letter);
                    }
                }
                // Serde makes the first letter of what Pascal case gives small.
                if self == Self::Camel
                    && let Some(first) = name.get_mut(..1)
                {
                    first.make_ascii_lowercase();
                }
                name
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_serde_writes_them() {
        let written = |name| Case::named(name).map(|case| case.apply("first_place"));
        let wanted = [
            ("lowercase", "first_place"),
            ("UPPERCASE", "FIRST_PLACE"),
            ("PascalCase", "FirstPlace"),
            ("camelCase", "firstPlace"),
            ("snake_case", "first_place"),
            ("SCREAMING_SNAKE_CASE", "FIRST_PLACE"),
            ("kebab-case", "first-place"),
            ("SCREAMING-KEBAB-CASE", "FIRST-PLACE"),
        ];
        for (name, wanted) in wanted {
            assert_eq!(written(name).as_deref(), Some(wanted));
        }
        assert_eq!(written("Title Case"), None);
        let camel = ["_id", "ID", "__", "_\u{e9}t\u{e9}"].map(|field| Case::Camel.apply(field));
        assert_eq!(camel, ["id", "iD", "", "\u{e9}t\u{e9}"]);
    }
}
