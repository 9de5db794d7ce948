//! YAML text to nodes.
//!
//! Owns [`Node`]; the only user of the YAML parser. Never gives a scalar a type: `0123456`, `true`, `1e3` and `NO` stay the
//! text that was written, and whoever reads a key says what it must be. Keeps: each node knows its line.

use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::{Marker, ScanError, TScalarStyle};

/// Deepest nesting: the settings need four levels.
const DEPTH_MAX: usize = 16;

/// A piece of YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// Nothing, `~` or `null`.
    Empty,
    /// A scalar as it was written.
    Text {
        /// The text.
        text: String,
        /// Whether it stood without quotes.
        is_bare: bool,
    },
    /// A sequence.
    List(Vec<Placed>),
    /// A mapping in the order of its keys.
    Map(Vec<(String, Placed)>),
}

/// A node and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// The node.
    pub(super) node: Node,
    /// Its line, from 1; that of its key if it has one.
    pub(super) line: usize,
}

/// Why a text is not the YAML of settings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    /// The line, from 1.
    pub(super) line: usize,
    /// What is wrong there.
    pub(super) problem: String,
}

impl Node {
    /// Returns a scalar that did not come from YAML.
    pub(super) fn of_text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), is_bare: false }
    }
}

/// Parses one document; an empty text is [`Node::Empty`].
pub(super) fn parse(text: &str) -> Result<Placed, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser::new_from_str(text);
    let mut root = Placed { node: Node::Empty, line: 1 };
    let mut documents = 0;
    loop {
        let (event, mark) = next(&mut parser)?;
        match event {
            Event::StreamEnd => return Ok(root),
            Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
            Event::DocumentStart => {
                documents += 1;
                if documents > 1 {
                    return Err(error(mark, "a second document begins; put all settings into one"));
                }
            }
            Event::Alias(_)
            | Event::Scalar(..)
            | Event::SequenceStart(..)
            | Event::SequenceEnd
            | Event::MappingStart(..)
            | Event::MappingEnd => root = node(&mut parser, event, mark, 0)?,
        }
    }
}

type Characters<'a> = Parser<std::str::Chars<'a>>;

fn next(parser: &mut Characters<'_>) -> Result<(Event, Marker), SyntaxError> {
    parser.next_token().map_err(|e: ScanError| error(*e.marker(), e.info()))
}

fn error(mark: Marker, problem: &str) -> SyntaxError {
    SyntaxError { line: mark.line().max(1), problem: problem.to_owned() }
}

fn node(parser: &mut Characters<'_>, event: Event, mark: Marker, depth: usize) -> Result<Placed, SyntaxError> {
    if depth > DEPTH_MAX {
        return Err(error(mark, "nested too deeply"));
    }
    let node = match event {
        Event::Scalar(text, style, _, _) => scalar(text, style),
        Event::SequenceStart(..) => list(parser, depth)?,
        Event::MappingStart(..) => map(parser, depth)?,
        Event::Alias(_) => return Err(error(mark, "aliases (*name) are not supported; write the value out")),
        Event::Nothing
        | Event::StreamStart
        | Event::StreamEnd
        | Event::DocumentStart
        | Event::DocumentEnd
        | Event::SequenceEnd
        | Event::MappingEnd => return Err(error(mark, "a value is missing")),
    };
    Ok(Placed { node, line: mark.line() })
}

fn scalar(text: String, style: TScalarStyle) -> Node {
    let is_bare = style == TScalarStyle::Plain;
    if is_bare && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL") {
        return Node::Empty;
    }
    Node::Text { text, is_bare }
}

fn list(parser: &mut Characters<'_>, depth: usize) -> Result<Node, SyntaxError> {
    let mut items = Vec::new();
    loop {
        let (event, mark) = next(parser)?;
        if event == Event::SequenceEnd {
            return Ok(Node::List(items));
        }
        items.push(node(parser, event, mark, depth + 1)?);
    }
}

fn map(parser: &mut Characters<'_>, depth: usize) -> Result<Node, SyntaxError> {
    let mut entries = Vec::new();
    loop {
        let (event, mark) = next(parser)?;
        let key = match event {
            Event::MappingEnd => return Ok(Node::Map(entries)),
            Event::Scalar(key, ..) => key,
            Event::Alias(_)
            | Event::SequenceStart(..)
            | Event::SequenceEnd
            | Event::MappingStart(..)
            | Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart
            | Event::DocumentEnd => return Err(error(mark, "a key must be a plain name")),
        };
        let (event, value_mark) = next(parser)?;
        let value = node(parser, event, value_mark, depth + 1)?;
        entries.push((key, Placed { node: value.node, line: mark.line() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, is_bare: bool) -> Node {
        Node::Text { text: text.to_owned(), is_bare }
    }

    #[test]
    fn scalars_stay_text() {
        let root = parse("a: 0123456\nb: true\nc: NO\nd: 1e3\ne: \"null\"\nf: 9007199254740993\n").unwrap();
        let Node::Map(entries) = root.node else { panic!("a map") };
        let values: Vec<_> = entries.iter().map(|(_, placed)| placed.node.clone()).collect();
        assert_eq!(
            values,
            [
                text("0123456", true),
                text("true", true),
                text("NO", true),
                text("1e3", true),
                text("null", false),
                text("9007199254740993", true)
            ]
        );
    }

    #[test]
    fn lines_are_those_of_the_keys() {
        let Node::Map(entries) = parse("# one\na:\n  b:\n    c\nd: [1]\n").unwrap().node else { panic!("a map") };
        let lines: Vec<_> = entries.iter().map(|(key, placed)| (key.as_str(), placed.line)).collect();
        assert_eq!(lines, [("a", 2), ("d", 5)]);
    }

    #[test]
    fn nothing_is_empty() {
        assert_eq!(parse("").unwrap().node, Node::Empty);
        assert_eq!(parse("# comment\n").unwrap().node, Node::Empty);
        assert_eq!(
            parse("a:\nb: ~\n").unwrap().node,
            Node::Map(vec![
                ("a".to_owned(), Placed { node: Node::Empty, line: 1 }),
                ("b".to_owned(), Placed { node: Node::Empty, line: 2 })
            ])
        );
    }

    #[test]
    fn what_settings_do_not_need_is_refused_with_its_line() {
        let refusal = |text: &str| parse(text).unwrap_err();
        assert_eq!(refusal("a: 1\n---\nb: 2\n").problem, "a second document begins; put all settings into one");
        assert_eq!(
            refusal("a: &x 1\nb: *x\n"),
            SyntaxError { line: 2, problem: "aliases (*name) are not supported; write the value out".to_owned() }
        );
        assert_eq!(refusal("a: 1\n? [x]\n: 2\n").problem, "a key must be a plain name");
        assert_eq!(refusal(&"[".repeat(40)).problem, "nested too deeply");
        assert_eq!(refusal("a: 1\nb: \"open\n").line, 2);
    }
}
