//! The tasks behind `./x`.
fn main() -> anyhow::Result<()> {
    anyhow::bail!("no task named; see ./x --help")
}
