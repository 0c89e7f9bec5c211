//! `--timings`: how long each stage of a command took.
//!
//! Stages are spans of `tracing`, which cost nothing while nobody listens. A stage is printed when it ends, so that
//! one inside another comes before it, and further to the right.

use std::time::Instant;

use tracing::span::{Attributes, Id};
use tracing::{Subscriber, subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::output;

/// Prints every stage of this process from now on.
pub(crate) fn print_stages() {
    // Only a second listener is refused, and there is none.
    let _ = subscriber::set_global_default(Registry::default().with(Stages));
}

/// Notes when a stage begins, and prints it when it ends.
struct Stages;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Stages {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(stage) = context.span(id) {
            stage.extensions_mut().insert(Instant::now());
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(stage) = context.span(&id) else { return };
        let begun = stage.extensions().get::<Instant>().copied();
        if let Some(begun) = begun {
            let milliseconds = begun.elapsed().as_secs_f64() * 1e3;
            let depth = stage.scope().count() - 1;
            output::print_talk(&format!(
                "{milliseconds:>10.3} ms  {:depth$}{}\n",
                "",
                stage.name(),
                depth = 2 * depth
            ));
        }
    }
}
