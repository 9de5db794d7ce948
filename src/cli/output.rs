//! What is written to standard output: tables for people, JSON for programs.
//!
//! Owns [`Output`]. Never writes a control character that came from data, and colours only a terminal whose user did not
//! set `NO_COLOR`. Keeps: JSON is one value a line, and each line is flushed when it is written.

use std::env;
use std::io::{self, IsTerminal, Write};

use serde_json::Value;

/// The form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns for people.
    #[default]
    Table,
    /// One JSON value a line.
    Json,
}

/// How a cell or a word is to stand out on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As any text.
    Plain,
    /// A heading.
    Heading,
    /// Good.
    Good,
    /// Worth a look.
    Warning,
    /// Bad.
    Bad,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Heading => "\u{1b}[1m",
            Self::Good => "\u{1b}[32m",
            Self::Warning => "\u{1b}[33m",
            Self::Bad => "\u{1b}[31m",
        }
    }
}

/// Where output goes, and how.
pub struct Output<'a> {
    /// The form.
    pub format: Format,
    sink: &'a mut dyn Write,
    colours: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// Returns a cell that stands out.
    pub fn toned(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: printable(text.as_ref()), tone }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}

impl<'a> Output<'a> {
    /// Returns an output that colours if `colours`.
    pub fn new(format: Format, sink: &'a mut dyn Write, colours: bool) -> Self {
        Self { format, sink, colours }
    }

    /// Writes a line of text.
    ///
    /// # Errors
    /// When the sink is closed.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.sink, "{text}")?;
        self.sink.flush()
    }

    /// Writes a JSON value on a line of its own.
    ///
    /// # Errors
    /// When the sink is closed.
    pub fn json(&mut self, value: &Value) -> io::Result<()> {
        self.line(&value.to_string())
    }

    /// Writes rows under headings, each column as wide as its widest cell.
    ///
    /// # Errors
    /// When the sink is closed.
    pub fn table<const N: usize>(&mut self, headings: [&str; N], rows: &[[Cell; N]]) -> io::Result<()> {
        let headings = headings.map(|heading| Cell::toned(heading, Tone::Heading));
        let mut widths = [0; N];
        for row in std::iter::once(&headings).chain(rows) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.text.chars().count().max(*width);
            }
        }
        self.row(&headings, &widths)?;
        for row in rows {
            self.row(row, &widths)?;
        }
        Ok(())
    }

    /// Writes one row of a table whose widths are given: for rows that come one by one.
    ///
    /// # Errors
    /// When the sink is closed.
    pub fn row<const N: usize>(&mut self, row: &[Cell; N], widths: &[usize; N]) -> io::Result<()> {
        let mut line = String::new();
        for (number, (cell, width)) in row.iter().zip(widths).enumerate() {
            if number > 0 {
                line.push_str("  ");
            }
            let padding = width.saturating_sub(cell.text.chars().count());
            // The last column is not padded, so that lines have no trailing spaces.
            let padding = if number + 1 == N { 0 } else { padding };
            line.push_str(&self.paint(&cell.text, cell.tone));
            line.extend(std::iter::repeat_n(' ', padding));
        }
        self.line(line.trim_end())
    }

    fn paint(&self, text: &str, tone: Tone) -> String {
        if self.colours && tone != Tone::Plain && !text.is_empty() {
            format!("{}{text}\u{1b}[0m", tone.code())
        } else {
            text.to_owned()
        }
    }
}

/// Returns whether standard output is a terminal whose user wants colours (<https://no-color.org>).
pub fn colours_wanted() -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns the text with control characters escaped, so that data cannot drive the terminal.
pub fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        if c.is_control() {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
        safe
    })
}

/// Returns the bytes as text of at most `characters_max` characters; bytes that are no UTF-8 as their count.
pub fn preview(bytes: &[u8], characters_max: usize) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return format!("({} bytes, not text)", bytes.len());
    };
    let mut shown: String = printable(text).chars().take(characters_max).collect();
    if text.chars().count() > characters_max {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(colours: bool) -> String {
        let mut sink = Vec::new();
        let rows = [["a".into(), Cell::toned("ok", Tone::Good)], ["longer".into(), "b\u{1b}[31m".into()]];
        Output::new(Format::Table, &mut sink, colours).table(["NAME", "STATE"], &rows).unwrap();
        String::from_utf8(sink).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_data_cannot_drive_the_terminal() {
        assert_eq!(table(false), "NAME    STATE\na       ok\nlonger  b\\u{1b}[31m\n");
    }

    #[test]
    fn colours_do_not_count_as_width() {
        assert_eq!(
            table(true),
            "\u{1b}[1mNAME\u{1b}[0m    \u{1b}[1mSTATE\u{1b}[0m\na       \u{1b}[32mok\u{1b}[0m\nlonger  b\\u{1b}[31m\n"
        );
    }

    #[test]
    fn a_preview_is_short_and_says_when_it_is_no_text() {
        assert_eq!(preview(b"hello", 3), "hel…");
        assert_eq!(preview("é\n".as_bytes(), 10), "é\\n");
        assert_eq!(preview(&[0xff, 0x00], 10), "(2 bytes, not text)");
    }
}
