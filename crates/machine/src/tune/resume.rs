//! What has a machine start a command again after a reboot: a unit of systemd, and what wants it.
//! Both are documents, which `undo` removes; a link, as `systemctl enable` makes it, is none.

use super::journal::Record;
use super::plan::Change;
use super::target::Target;
use std::path::Path;

const UNIT: &str = "/etc/systemd/system/onbeat-campaign.service";
const WANTS: &str = "/etc/systemd/system/multi-user.target.d/onbeat-campaign.conf";
const WANTED: &str = "[Unit]\nWants=onbeat-campaign.service\n";
/// What both begin with.
const FIRST: &str =
    "# Written by `onbeat measure campaign --reboot`; `onbeat tune undo` removes it.\n";
/// The longest unit.
const OCTETS_MAX: usize = 65_536;

/// The changes that have systemd start a command in a directory after the next boots.
///
/// # Errors
///
/// A word or the directory has characters that a unit cannot have; which.
pub fn resume(words: &[String], directory: &Path) -> Result<[Change; 2], String> {
    let directory = directory.to_str().ok_or_else(|| directory.display().to_string())?;
    let plain = |text: &str| text.replace('%', "%%");
    let quoted =
        |text: &str| format!("\"{}\"", plain(text).replace('\\', "\\\\").replace('"', "\\\""));
    if let Some(wrong) = words
        .iter()
        .map(String::as_str)
        .chain([directory])
        .find(|text| text.contains(char::is_control))
    {
        return Err(wrong.escape_debug().to_string());
    }
    // What follows a `$` would be taken for a variable (systemd.service(5)).
    let command: Vec<_> = words.iter().map(|word| quoted(word).replace('$', "$$")).collect();
    // Of type `exec` and after the target: the boot does not wait for hours of measurements.
    let unit = format!(
        "{FIRST}[Unit]\nDescription=onbeat measure campaign, continued after a reboot\n\
         After=multi-user.target\nRequiresMountsFor={}\n\n[Service]\nType=exec\n\
         WorkingDirectory={}\nExecStart={}\n",
        quoted(directory),
        plain(directory),
        command.join(" ")
    );
    let change = |what: &str, path: &str, text: String| Change {
        what: what.to_owned(),
        target: Target::Document { path: path.to_owned() },
        old: None,
        new: Some(text),
        may_refuse: false,
        reboot: true,
    };
    Ok([
        change("a unit that continues the campaign", UNIT, unit),
        change("it is started after a reboot", WANTS, format!("{FIRST}{WANTED}")),
    ])
}

/// Whether a document is one of these.
pub(super) fn is_known(path: &str) -> bool {
    [UNIT, WANTS].contains(&path)
}

/// Whether a document has a directory to itself, which comes and goes with it.
pub(super) fn has_directory(path: &str) -> bool {
    path == WANTS
}

/// Whether a text may be one of these documents.
pub(super) fn is_ours(path: &str, text: &str) -> bool {
    let control = |c: char| c.is_control() && c != '\n';
    match text.strip_prefix(FIRST) {
        Some(rest) if path == WANTS => rest == WANTED,
        Some(rest) => rest.len() <= OCTETS_MAX && !rest.contains(control),
        None => false,
    }
}

/// Whether what was started after a reboot has begun a tune in another boot than the present one:
/// the machine restarted before it was done.
pub fn restarted(records: &[Record], boot: &str) -> bool {
    let resumes =
        |record: &Record| matches!(record, Record::Begin { target, .. } if target.resumes());
    let begun =
        |record: &Record| matches!(record, Record::Tune { boot: one, .. } if one.as_str() != boot);
    let at = records.iter().rposition(resumes);
    at.is_some_and(|at| records[at..].iter().any(begun))
}

impl Target {
    /// Whether it continues a campaign after a reboot.
    pub fn resumes(&self) -> bool {
        matches!(self, Self::Document { path } if is_known(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_what_they_are_in_a_unit() {
        let words = ["/opt/a b/onbeat", "--out", "50%n \"x\" $HOME \\"].map(str::to_owned);
        let [unit, wants] = resume(&words, Path::new("/srv/100%")).unwrap();
        let text = unit.new.unwrap();
        for line in [
            "RequiresMountsFor=\"/srv/100%%\"",
            "WorkingDirectory=/srv/100%%",
            r#"ExecStart="/opt/a b/onbeat" "--out" "50%%n \"x\" $$HOME \\""#,
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        assert!(unit.target.resumes() && wants.target.resumes());
        assert!(is_ours(UNIT, &text) && !is_ours(WANTS, &text));
        assert!(!is_ours(UNIT, "[Service]\n") && is_ours(WANTS, &wants.new.unwrap()));
        let torn = ["a\nExecStart=/bin/sh".to_owned()];
        assert!(resume(&torn, Path::new("/")).unwrap_err().contains("\\n"));
        assert!(resume(&words, Path::new("/a\nb")).is_err());
    }
}
