//! Prints the tables of `docs/statistics.md`, from the same seed and number of repetitions:
//! `cargo run --release -p planish-stats --example tables`.

use planish_stats::simulate::{
    GUARD_REPS, LAYOUT_REPS, REPS, SEED, false_keep_table, guard_table, ladder_table, layout_table,
    step_table,
};

fn main() {
    println!("{}", false_keep_table(REPS, SEED).to_markdown());
    println!("{}", ladder_table(REPS, SEED).to_markdown());
    println!("{}", step_table(REPS, SEED).to_markdown());
    println!("{}", layout_table(LAYOUT_REPS, SEED));
    print!("{}", guard_table(GUARD_REPS, SEED));
}
