//! Measures what the design promises, and prints it as a page.
//!
//! Everything is a ratio within one run, or a median of several: machines differ, promises do not. What is slow is named, not
//! averaged away.
//!
//! Not here: models and networks. The model of a measured play answers at once.

use anyhow::Result;

mod machine;
mod memory;
mod play;
mod report;
mod rulebook;
mod store;

use report::Page;

#[tokio::main]
async fn main() -> Result<()> {
    let mut page = Page::new(&machine::describe());
    // First of all: what others have held and given back would hide what this one takes.
    memory::measure(&mut page).await?;
    rulebook::measure(&mut page).await?;
    store::measure(&mut page).await?;
    play::measure(&mut page).await?;
    print!("{}", page.text());
    Ok(())
}
