//! Looks through a value for numbers that JSON cannot write: NaN and infinities.

use std::fmt;

use serde::Serialize;
use serde::ser::{
    self, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};

/// A serializer that writes nothing, and refuses what JSON would write as null without being it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finite;

/// Why a value is refused.
#[derive(Debug)]
pub(super) struct Refused(String);

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self(why.to_string())
    }
}

type Checked = Result<(), Refused>;

/// Values that have no numbers, or whole ones.
macro_rules! plain {
    ($($name:ident($($given:ty),*)),*) => {
        $(fn $name(self, $(_: $given),*) -> Checked { Ok(()) })*
    };
}

/// Values that have one inside.
macro_rules! around {
    ($($name:ident($($given:ty),*)),*) => {
        $(fn $name<T: Serialize + ?Sized>(self, $(_: $given,)* value: &T) -> Checked {
            value.serialize(self)
        })*
    };
}

/// Values that have any number of parts.
macro_rules! compound {
    ($($name:ident($($given:ty),*)),*) => {
        $(fn $name(self, $(_: $given),*) -> Result<Self, Refused> { Ok(self) })*
    };
}

/// The parts of a compound value, by name or not.
macro_rules! parts {
    ($($of:ident::$part:ident($($name:ty)?)),*) => {
        $(impl $of for Finite {
            type Ok = ();
            type Error = Refused;

            fn $part<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Checked {
                value.serialize(*self)
            }

            fn end(self) -> Checked {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq::serialize_element(), SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(), SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(&'static str),
    SerializeStructVariant::serialize_field(&'static str)
}

impl SerializeMap for Finite {
    type Ok = ();
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Checked {
        // JSON has been written already, which refuses those that are no texts.
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Checked {
        value.serialize(*self)
    }

    fn end(self) -> Checked {
        Ok(())
    }
}

impl ser::Serializer for Finite {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    plain! {
        serialize_bool(bool), serialize_char(char), serialize_str(&str), serialize_bytes(&[u8]),
        serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64),
        serialize_i128(i128), serialize_u8(u8), serialize_u16(u16), serialize_u32(u32),
        serialize_u64(u64), serialize_u128(u128), serialize_none(), serialize_unit(),
        serialize_unit_struct(&'static str),
        serialize_unit_variant(&'static str, u32, &'static str)
    }

    around! {
        serialize_some(), serialize_newtype_struct(&'static str),
        serialize_newtype_variant(&'static str, u32, &'static str)
    }

    compound! {
        serialize_seq(Option<usize>), serialize_tuple(usize),
        serialize_tuple_struct(&'static str, usize),
        serialize_tuple_variant(&'static str, u32, &'static str, usize),
        serialize_map(Option<usize>), serialize_struct(&'static str, usize),
        serialize_struct_variant(&'static str, u32, &'static str, usize)
    }

    fn serialize_f32(self, number: f32) -> Checked {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Checked {
        if number.is_finite() {
            return Ok(());
        }
        Err(ser::Error::custom(format_args!("{number} is no number of JSON")))
    }
}
