//! The schema of every JSON that planish prints: what `docs/schema/` holds, beside that of the files that users write.

use planish_model::{Plan, Profile, Sizing};
use planish_residency::top::Sample;
use planish_trial::TrialFile;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::json;

use crate::commands::{
    ApplyReport, C2cReport, CheckReport, ConfirmReport, DoctorReport, ExportReport, HonestyReport,
    HostDiffReport, HostRecordReport, ImportReport, InstallCheckReport, InstallPublishReport,
    InstallWarmReport, JitterReport, KnobsReport, LatencyReport, LogReport, MapReport, MoveReport,
    ProfilesReport, ProveConnReport, ProveReport, RunReport, SelfCheckReport, TextBoltReport,
    TextCheckReport, TextFetchReport, TextHugeReport, TextImportReport, TextLinkFlagsReport, TextMergeReport,
    TextOrderReport, TextPruneReport, TextPublishReport, TextRecordReport, TextShowReport, TextVerifyReport,
    TopReport, TopoReport, TrialNewReport, TrialResumeReport, TrialRunReport, TrialStatusReport,
    TrialStopReport, UndoReport, VersionReport,
};
use crate::envelope::{Envelope, schema_name};
use crate::page::Report;

/// Makes [`schemas`] and [`schema_names`] of one list. The program that is shipped asks for names alone: with what
/// makes the schemas it would be a megabyte larger.
macro_rules! list {
    (reports: $($report:ty),+; others: $($name:literal = $schema:expr),+;) => {
        /// Every schema by the name of its file, without the ending.
        #[must_use]
        pub fn schemas() -> Vec<(&'static str, Schema)> {
            vec![$((<$report as Report>::COMMAND, of::<$report>()),)+ $(($name, $schema),)+]
        }

        /// The names of all of them.
        #[must_use]
        pub const fn schema_names() -> &'static [&'static str] {
            &[$(<$report as Report>::COMMAND,)+ $($name,)+]
        }
    };
}

list! {
    reports:
        ApplyReport,
        CheckReport,
        ConfirmReport,
        DoctorReport,
        ExportReport,
        HostDiffReport,
        HostRecordReport,
        ImportReport,
        InstallCheckReport,
        InstallPublishReport,
        InstallWarmReport,
        KnobsReport,
        LatencyReport,
        JitterReport,
        LogReport,
        MapReport,
        MoveReport,
        Plan,
        ProfilesReport,
        ProveReport,
        ProveConnReport,
        RunReport,
        Sizing,
        TextBoltReport,
        TextCheckReport,
        TextFetchReport,
        TextHugeReport,
        TextImportReport,
        TextLinkFlagsReport,
        TextVerifyReport,
        TextMergeReport,
        TextOrderReport,
        TextPruneReport,
        TextPublishReport,
        TextRecordReport,
        TextShowReport,
        TopReport,
        C2cReport,
        TopoReport,
        HonestyReport,
        TrialNewReport,
        TrialResumeReport,
        TrialRunReport,
        SelfCheckReport,
        TrialStatusReport,
        TrialStopReport,
        UndoReport,
        VersionReport;
    others:
        "text-cc" = without_result("text-cc"),
        "text-ld" = without_result("text-ld"),
        "usage" = without_result("usage"),
        "workload" = of_program("workload"),
        "profile-file" = of_file::<Profile>(),
        "top-sample" = of_file::<Sample>(),
        "trial-file" = of_file::<TrialFile>();
}

/// A file that users write, or a line of one that planish reads again. Fields that may be left out are optional.
fn of_file<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}

/// The envelope around one kind of result.
fn of<T: Report>() -> Schema {
    named(T::COMMAND, generator().into_root_schema_for::<Envelope<T>>())
}

/// The envelope around the object of a program that says itself what is in it.
fn of_program(command: &str) -> Schema {
    named(command, generator().into_root_schema_for::<Envelope<serde_json::Map<String, serde_json::Value>>>())
}

/// The envelope of a failure where there is no result: a command line without a command, or with one that leaves
/// stdout to a program of the user's.
fn without_result(command: &str) -> Schema {
    named(command, generator().into_root_schema_for::<Envelope<()>>())
}

/// An envelope with the names that are fixed for a command.
fn named(command: &str, mut schema: Schema) -> Schema {
    schema.insert("title".to_owned(), json!(format!("planish {} --json", command.replace('-', " "))));
    for (field, fixed) in [("schema", schema_name(command)), ("command", command.to_owned())] {
        let field = schema.pointer_mut(&format!("/properties/{field}")).expect("every envelope has it");
        field["const"] = json!(fixed);
    }
    schema
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
        let of_files = ["profile-file", "top-sample", "trial-file"];
        for (command, schema) in schemas().into_iter().filter(|(name, _)| !of_files.contains(name)) {
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
