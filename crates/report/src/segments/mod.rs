//! What segments of Timed C programs took: a table for a terminal, and a page.

mod page;
mod table;

pub use page::html;
pub use table::table;
