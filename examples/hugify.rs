//! The code of a program on huge pages: one call, first thing in main.
//!
//! ```text
//! cargo run --release --example hugify
//! ```

use std::error::Error;

/// Puts this program's text on huge pages, and says what came of it.
pub fn main() -> Result<(), Box<dyn Error>> {
    let own = planish::hugify_self()?;
    println!("{} of {} bytes of text on huge pages by {:?}", own.huge_bytes, own.whole_bytes, own.route);
    own.why_not.iter().for_each(|why| println!("not by {why}"));
    Ok(())
}
