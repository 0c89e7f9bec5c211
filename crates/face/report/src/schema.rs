//! The schema of every JSON that planish prints: what `docs/schema/` holds.

use planish_model::{Plan, Sizing};
use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::json;

use crate::commands::{
    ApplyReport, CheckReport, DoctorReport, KnobsReport, LogReport, ProveReport, SelfCheckReport,
    TrialRunReport, UndoReport, VersionReport,
};
use crate::envelope::{Envelope, schema_name};
use crate::page::Report;

/// Every schema by the name of its file, without the ending.
#[must_use]
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        of::<ApplyReport>(),
        of::<CheckReport>(),
        of::<DoctorReport>(),
        of::<KnobsReport>(),
        of::<LogReport>(),
        of::<ProveReport>(),
        of::<Plan>(),
        of::<Sizing>(),
        of::<SelfCheckReport>(),
        of::<TrialRunReport>(),
        of::<UndoReport>(),
        of::<VersionReport>(),
    ]
}

/// The envelope around one kind of result, with the names that are fixed for it.
fn of<T: Report>() -> (&'static str, Schema) {
    let mut schema = generator().into_root_schema_for::<Envelope<T>>();
    schema.insert("title".to_owned(), json!(format!("planish {} --json", T::COMMAND.replace('-', " "))));
    for (field, fixed) in [("schema", schema_name(T::COMMAND)), ("command", T::COMMAND.to_owned())] {
        let field = schema.pointer_mut(&format!("/properties/{field}")).expect("every envelope has it");
        field["const"] = json!(fixed);
    }
    (T::COMMAND, schema)
}

/// Schemas describe what is written: a field that is left out when empty is optional, others are required.
fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

#[cfg(test)]
mod tests {
    use planish_model::Exit;

    use super::*;
    use crate::{Level, Message};

    #[test]
    fn every_schema_is_one_and_accepts_a_failure() {
        for (command, schema) in schemas() {
            let validator = jsonschema::validator_for(schema.as_value()).expect("a sound schema");
            let messages = vec![Message::new(Level::Error, "no").hint("cure")];
            let failed = Envelope::<()>::new(command, Exit::Refused, None, messages);
            let json = serde_json::to_value(&failed).expect("plain data");
            assert!(validator.is_valid(&json), "{command}: {:?}", validator.validate(&json).err());
            let mut wrong = json;
            wrong["command"] = json!("another");
            assert!(!validator.is_valid(&wrong), "{command} accepts the envelope of another command");
        }
    }
}
