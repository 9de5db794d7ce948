//! The list of calendars of working days.
//!
//! Owns the way from the list to [`WorkingDays`]. Never judges a date: the calendar does. Keeps: an error names the entry, the
//! key inside of it and the line.

use std::collections::BTreeSet;

use jiff::civil::{Date, Weekday};

use super::error::{ConfigError, Origin};
use super::kinds::at_line;
use super::layers::{CALENDARS, Layers};
use super::yaml::{Node, Placed};
use crate::calendar::local::parse_date;
use crate::calendar::rules::Rules;
use crate::calendar::working_days::{Content, WorkingDays};

const FIELDS: [&str; 7] = ["id", "version", "first", "last", "weekend", "holidays", "extra_working_days"];
const EXAMPLE: &str = "{id: de-by, version: \"2027.1\", first: 2027-01-01, last: 2027-12-31, weekend: [sat, sun], holidays: [2027-12-25]}";
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// Reads the list.
pub(super) fn read(layers: &Layers) -> Result<Rules, ConfigError> {
    let Some(setting) = layers.get(CALENDARS) else {
        return Ok(Rules::default());
    };
    let Node::List(items) = &setting.node else {
        return Err(ConfigError::of_key(CALENDARS, Some(setting.origin.clone()), "is not a list"));
    };
    let calendars: Result<Vec<WorkingDays>, ConfigError> =
        items.iter().enumerate().map(|(index, item)| read_entry(index, item, &setting.origin)).collect();
    Rules::new(calendars?).map_err(|problem| ConfigError::of_key(CALENDARS, Some(setting.origin.clone()), problem))
}

fn read_entry(index: usize, item: &Placed, list: &Origin) -> Result<WorkingDays, ConfigError> {
    let key = format!("{CALENDARS}[{index}]");
    let origin = at_line(list, item.line);
    let Node::Map(written) = &item.node else {
        return Err(ConfigError::of_key(key, Some(origin), format!("is not a calendar; write {EXAMPLE}")));
    };
    let mut seen = BTreeSet::new();
    for (name, value) in written {
        let problem = if !FIELDS.contains(&name.as_str()) {
            format!("is no setting of a calendar; there are {}", FIELDS.join(", "))
        } else if !seen.insert(name.as_str()) {
            "is given twice; keep one of them".to_owned()
        } else {
            continue;
        };
        return Err(ConfigError::of_key(format!("{key}.{name}"), Some(at_line(list, value.line)), problem));
    }
    let entry = Entry { key: &key, origin: &origin, list, written };
    let content = Content {
        id: entry.text("id")?.to_owned(),
        version: entry.text("version")?.to_owned(),
        first: entry.date("first")?,
        last: entry.date("last")?,
        weekend: entry.items("weekend", weekday)?,
        holidays: entry.items("holidays", date)?.into_iter().collect(),
        extra_working_days: entry.items("extra_working_days", date)?.into_iter().collect(),
    };
    WorkingDays::new(content).map_err(|problems| ConfigError::of_key(key, Some(origin), problems.join("; ")))
}

fn date(text: &str) -> Result<Date, String> {
    parse_date(text).map_err(|error| error.to_string())
}

fn weekday(text: &str) -> Result<Weekday, String> {
    let found = WEEKDAYS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    let names = WEEKDAYS.map(|(name, _)| name).join(", ");
    found.map(|(_, day)| *day).ok_or_else(|| format!("`{}` is no day of the week; use {names}", text.escape_debug()))
}

/// An entry as it was written.
struct Entry<'a> {
    key: &'a str,
    origin: &'a Origin,
    list: &'a Origin,
    written: &'a [(String, Placed)],
}

impl<'a> Entry<'a> {
    fn optional(&self, field: &str) -> Option<&'a Placed> {
        self.written.iter().find(|(name, _)| name == field).map(|(_, value)| value)
    }

    fn text(&self, field: &str) -> Result<&'a str, ConfigError> {
        match self.optional(field) {
            Some(Placed { node: Node::Text { text, .. }, .. }) => Ok(text),
            Some(other) => Err(self.refusal(field, other.line, "takes one value")),
            None => {
                let problem = format!("has no {field}; write {EXAMPLE}");
                Err(ConfigError::of_key(self.key, Some(self.origin.clone()), problem))
            }
        }
    }

    fn date(&self, field: &str) -> Result<Date, ConfigError> {
        let text = self.text(field)?;
        let line = self.optional(field).map_or(0, |placed| placed.line);
        date(text).map_err(|problem| self.refusal(field, line, &problem))
    }

    fn items<T>(&self, field: &str, read: fn(&str) -> Result<T, String>) -> Result<Vec<T>, ConfigError> {
        let Some(placed) = self.optional(field) else {
            return Ok(Vec::new());
        };
        let Node::List(items) = &placed.node else {
            return Err(self.refusal(field, placed.line, "is not a list; write [a, b], or [] for none"));
        };
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let Node::Text { text, .. } = &item.node else {
                return Err(self.refusal(field, item.line, "has an item that is not one value"));
            };
            values.push(read(text).map_err(|problem| self.refusal(field, item.line, &problem))?);
        }
        Ok(values)
    }

    fn refusal(&self, field: &str, line: usize, problem: &str) -> ConfigError {
        ConfigError::of_key(format!("{}.{field}", self.key), Some(at_line(self.list, line)), problem)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::calendar::Calendar as _;
    use crate::config::sources::Sources;

    fn load(text: &str) -> Result<Rules, String> {
        let file = Some((PathBuf::from("p.yaml"), text.to_owned()));
        let layers = Layers::merge(&Sources { file, ..Sources::default() }).map_err(|error| error.to_string())?;
        read(&layers).map_err(|error| error.to_string())
    }

    const DE: &str = "\
calendars:
  - id: de-by
    version: '2026.1'
    first: 2026-01-01
    last: 2026-12-31
    weekend: [Sat, sun]
    holidays: [2026-12-25]
    extra_working_days:
      - 2026-12-19
  - {id: none, version: 1, first: 2026-01-01, last: 2026-12-31}
";

    #[test]
    fn calendars_are_read() {
        let rules = load(DE).unwrap();
        let ids: Vec<&str> = rules.calendars().map(|calendar| calendar.content().id.as_str()).collect();
        assert_eq!(ids, ["de-by", "none"]);
        let first = rules.calendars().next().unwrap();
        assert_eq!(first.is_working(Date::constant(2026, 12, 19)), Some(true));
        assert_eq!(first.is_working(Date::constant(2026, 12, 25)), Some(false));
        assert_eq!(load("").unwrap().digest(), Rules::default().digest());
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let check = |change: (&str, &str), expected: &str| {
            assert_eq!(load(&DE.replacen(change.0, change.1, 1)).unwrap_err(), expected);
        };
        check(
            ("[Sat, sun]", "[Sat, son]"),
            "calendars[0].weekend: `son` is no day of the week; use mon, tue, wed, thu, fri, sat, sun (from p.yaml line 6)",
        );
        check(
            ("[2026-12-25]", "[25.12.2026]"),
            "calendars[0].holidays: `25.12.2026` is not a date such as 2027-03-28 (from p.yaml line 7)",
        );
        check(
            ("- 2026-12-19", "- 2027-12-18"),
            "calendars[0]: 2027-12-18 is not within 2026-01-01 to 2026-12-31, the dates that the calendar covers (from \
             p.yaml line 2)",
        );
        check(
            ("id: none", "id: de-by"),
            "calendars: two calendars are named `de-by`, one of version 2026.1 (from p.yaml line 1)",
        );
        let unknown = load(&DE.replacen("holidays:", "holiday:", 1)).unwrap_err();
        assert!(
            unknown.starts_with("calendars[0].holiday: is no setting of a calendar; there are id, version"),
            "{unknown}"
        );
        let missing = load(&DE.replacen("    last: 2026-12-31\n", "", 1)).unwrap_err();
        assert!(missing.starts_with("calendars[0]: has no last; write {id: de-by"), "{missing}");
        assert!(load("calendars: 1\n").unwrap_err().starts_with("calendars: is not a list"));
    }
}
