//! Tables as text, for terminals.

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

/// A table without lines and with two spaces between its columns.
pub fn grid(headings: &[&str]) -> Table {
    let mut grid = Table::new();
    grid.load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headings);
    for column in grid.column_iter_mut() {
        column.set_padding((0, 2));
    }
    grid
}

/// The table with a rule below its headings, without spaces at the ends of its lines.
pub fn ruled(grid: &Table) -> String {
    let text = grid.to_string();
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let rule = "─".repeat(width);
    lines.insert(1.min(lines.len()), &rule);
    lines.join("\n")
}

/// A cell with a number.
pub fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
