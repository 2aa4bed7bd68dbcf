//! `duramen series create`: a series with what is to be known of it.

use clap::Args;
use duramen::{Database, Error, ErrorKind, Lossy, SeriesDefinition, Thinning, ValueType};

use super::{parse_label, parse_type};
use crate::Result;
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::commands::retain::parse_span;
use crate::exit::Success;
use crate::meant::Named as _;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series create plant.duramen boiler/7/temp --unit C --label site=north
  duramen series create plant.duramen boiler/7/on --type bool --description 'burner is lit'
  duramen series create plant.duramen boiler/7/temp --change --display 0..120
  duramen series create plant.duramen boiler/7/temp --change --unlabel site --display none
  duramen series create plant.duramen boiler/7/flow --lossy door:0.25:10m

The database is created if it is missing. With --change it says something else of a series that is
there: what is not given is as it was, and the type stays.";

/// Make a series, or say something else of one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Create {
    #[command(flatten)]
    database: WriteDatabase,
    /// The name of the series
    #[arg(value_name = "TAG")]
    name: String,
    /// The type of its values: f64, f32, i64, bool or string; f64 if none is said
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    value_type: Option<ValueType>,
    /// What the values count or measure
    #[arg(long)]
    unit: Option<String>,
    /// What the series is, for people
    #[arg(long)]
    description: Option<String>,
    /// A label by which it is found; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
    /// A label that it has no more; may be given several times
    #[arg(long = "unlabel", value_name = "NAME", requires = "change")]
    unlabelled: Vec<String>,
    /// Between which values it is usually shown, or none
    #[arg(long, value_name = "LOW..HIGH", value_parser = parse_shown, allow_hyphen_values = true)]
    display: Option<Display>,
    /// What is given up of the values, within a tolerance: door (swinging door) or band (dead
    /// band), maybe with the longest gap that they may leave, as in door:0.25:10m; steps (at most
    /// 65,536 in a range), as in steps:0..120; or none
    #[arg(long, value_name = "HOW", value_parser = parse_lossy)]
    lossy: Option<Lossiness>,
    /// Change a series that is there
    #[arg(long)]
    change: bool,
    #[command(flatten)]
    note: Note,
}

impl Create {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        if self.change {
            self.write(&self.database.open(session)?)?;
        } else {
            self.database.write_or_create(session, |database| self.write(database))?;
        }
        let did = if self.change { "changed" } else { "created" };
        if output.style.json {
            output.line(serde_json::json!({ "series": self.name, did: true }))?;
        } else {
            output.line(format_args!("{did} the series {}", self.name))?;
        }
        Ok(Success::Done)
    }

    fn write(&self, database: &Database) -> Result<()> {
        let mut transaction = database.transaction();
        if self.change {
            let info = transaction.series_info(&self.name);
            let mut definition = info.or_meant(&database.snapshot(), &self.name)?.definition;
            let known = |label: &&String| definition.labels.contains_key(*label);
            if let Some(missing) = self.unlabelled.iter().find(|label| !known(label)) {
                return Err(unlabelled(&self.name, missing, &definition).into());
            }
            definition.labels.retain(|label, _| !self.unlabelled.contains(label));
            transaction.change_series(&self.name, &self.defined(definition))?;
        } else {
            let definition = SeriesDefinition::new(ValueType::F64);
            transaction.create_series(&self.name, &self.defined(definition))?;
        }
        transaction.commit(&self.note.options())?;
        Ok(())
    }

    /// A definition with what is said.
    fn defined(&self, mut definition: SeriesDefinition) -> SeriesDefinition {
        definition.value_type = self.value_type.unwrap_or(definition.value_type);
        definition.unit = self.unit.clone().unwrap_or(definition.unit);
        definition.description = self.description.clone().unwrap_or(definition.description);
        definition.labels.extend(self.labels.iter().cloned());
        if let Some(Display(display)) = self.display {
            definition.display = display;
        }
        if let Some(Lossiness(lossy)) = self.lossy {
            definition.lossy = lossy;
        }
        definition
    }
}

/// The error for a label that a series does not have.
fn unlabelled(name: &str, label: &str, definition: &SeriesDefinition) -> Error {
    let known: Vec<&str> = definition.labels.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let message = format!("series {name:?} has no label {label:?}; its labels: {known}");
    Error::new(ErrorKind::NotFound, message)
}

/// Between which values a series is usually shown, if that is said.
#[derive(Debug, Clone, Copy)]
struct Display(Option<(f64, f64)>);

/// What is to be given up, which may be nothing.
#[derive(Debug, Clone, Copy)]
struct Lossiness(Option<Lossy>);

fn parse_lossy(text: &str) -> Result<Lossiness, String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let thinned = || {
        let (tolerance, gap) = match rest.split_once(':') {
            Some((tolerance, gap)) => (tolerance, Some(parse_span(gap).ok()?.as_micros())),
            None => (rest, None),
        };
        Some((tolerance.parse::<f64>().ok()?, gap.map(i64::try_from).transpose().ok()?))
    };
    let lossy = match kind {
        "none" if rest.is_empty() => return Ok(Lossiness(None)),
        "door" => thinned().map(|(tolerance, gap_us)| {
            Lossy::Thinned(Thinning::SwingingDoor { tolerance, gap_us })
        }),
        "band" => {
            thinned().map(|(band, gap_us)| Lossy::Thinned(Thinning::DeadBand { band, gap_us }))
        }
        "steps" => parse_display(rest).ok().map(|(low, high)| Lossy::Quantised { low, high }),
        _ => None,
    };
    lossy
        .map(|lossy| Lossiness(Some(lossy)))
        .ok_or_else(|| format!("{text:?} is neither door:0.5, band:0.5:10m, steps:0..120 nor none"))
}

fn parse_shown(text: &str) -> Result<Display, String> {
    if text == "none" {
        return Ok(Display(None));
    }
    parse_display(text).map(|range| Display(Some(range)))
}

fn parse_display(text: &str) -> Result<(f64, f64), String> {
    let ends = text
        .split_once("..")
        .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)));
    ends.ok_or_else(|| format!("{text:?} is no range, such as 0..120"))
}
