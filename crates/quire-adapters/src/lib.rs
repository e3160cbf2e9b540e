//! How the outside is reached: models behind [`providers`]. Each file is a stranger to the others.

pub mod providers;
