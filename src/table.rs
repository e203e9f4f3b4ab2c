//! Tables for the terminal, all of one look.

use comfy_table::{ContentArrangement, Table, presets};

/// Rows under a header, without borders; empty if there are no rows. A line break in a cell is one in the table.
pub fn borderless<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(header);
    table.add_rows(rows.into_iter().map(|row| row.map(|cell| printable(&cell))));
    if table.is_empty() {
        return String::new();
    }
    // Cells have a blank on either side.
    table.lines().map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(&line).trim_end())).collect()
}

/// Names come from outside: whatever could steer a terminal is escaped.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}
