//! What the types of columns are called in SQL.

use datafusion::arrow::datatypes::{DataType, Field};

use crate::column_type::is_json;

/// The type of a column as it would be declared: `BIGINT`, `TEXT[]`, `DECIMAL(10, 2)`, `JSON`; that
/// of objects has their fields, as in `STRUCT("name" TEXT)`.
pub(crate) fn of_field(field: &Field) -> String {
    if is_json(field) { "JSON".to_owned() } else { of_type(field.data_type()) }
}

fn of_type(of: &DataType) -> String {
    let name = match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "TEXT",
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "TINYINT UNSIGNED",
        DataType::UInt16 => "SMALLINT UNSIGNED",
        DataType::UInt32 => "INTEGER UNSIGNED",
        DataType::UInt64 => "BIGINT UNSIGNED",
        DataType::Float32 => "REAL",
        DataType::Float64 => "DOUBLE",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(_) | DataType::Time64(_) => "TIME",
        DataType::Timestamp(_, None) => "TIMESTAMP",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BYTEA",
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            return format!("DECIMAL({precision}, {scale})");
        }
        DataType::Dictionary(_, values) => return of_type(values),
        DataType::List(item) | DataType::LargeList(item) => return format!("{}[]", of_field(item)),
        DataType::Struct(members) => {
            let members = members.iter();
            let members = members.map(|member| format!("{:?} {}", member.name(), of_field(member)));
            return format!("STRUCT({})", members.collect::<Vec<_>>().join(", "));
        }
        other => return other.to_string(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{Fields, TimeUnit};

    use super::*;
    use crate::column_type::json_text;

    #[test]
    fn types_are_called_as_they_are_declared() {
        let field = |of: DataType| Field::new("f", of, true);
        let list = |of: Field| field(DataType::List(of.into()));
        let json = json_text(field(DataType::Utf8View));
        let object = DataType::Struct(Fields::from(vec![
            Field::new("a", DataType::Int64, true),
            json.clone().with_name("b c"),
        ]));
        let zone = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        for (field, name) in [
            (field(DataType::Utf8View), "TEXT"),
            (json.clone(), "JSON"),
            (list(json), "JSON[]"),
            (field(DataType::Decimal128(10, 2)), "DECIMAL(10, 2)"),
            (field(zone), "TIMESTAMP WITH TIME ZONE"),
            (list(field(object)), "STRUCT(\"a\" BIGINT, \"b c\" JSON)[]"),
        ] {
            assert_eq!(of_field(&field), name);
        }
    }
}
