//! Whether one run is better or worse than another: a table for a terminal, and a page.

mod page;
mod table;

pub use page::html;
pub use table::table;
