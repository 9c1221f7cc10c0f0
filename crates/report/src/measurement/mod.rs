//! What the five tests of synchronised time measured on a machine, and a campaign over the paper's
//! scenarios: a table for a terminal, one self-contained page, and samples as CSV.

mod campaign;
mod page;
mod published;
mod table;

pub use campaign::{campaign_html, campaign_table};
pub use page::html;
pub use table::{compared, stalled, table};

/// The values of a series as CSV: one column, in the order in which they were measured if the
/// series is ordered.
pub fn csv(values: &[i64]) -> String {
    let mut text = String::with_capacity(8 * values.len() + 9);
    text.push_str("value_ns\n");
    for value in values {
        text.push_str(&value.to_string());
        text.push('\n');
    }
    text
}
