//! Rules about the workspace's crates.

use crate::{Finding, Tree};
use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// Which crate of ours may depend on which (ARCHITECTURE.md, "Rooms").
pub(crate) const EDGES: [(&str, &[&str]); 20] = [
    ("onbeat-model", &[]),
    ("onbeat-description", &["onbeat-model"]),
    ("onbeat-program", &["onbeat-model", "onbeat-description"]),
    ("onbeat-bounds", &["onbeat-model"]),
    ("onbeat-timing", &["onbeat-model", "onbeat-bounds"]),
    ("onbeat-measure", &["onbeat-model"]),
    ("onbeat-report", &["onbeat-model", "onbeat-measure"]),
    ("onbeat-configuration", &["onbeat-model"]),
    ("onbeat-runtime", &["onbeat-model"]),
    ("onbeat-network-code", &["onbeat-model", "onbeat-bounds", "onbeat-runtime"]),
    ("onbeat-net", &["onbeat-model", "onbeat-runtime"]),
    ("onbeat", &["onbeat-model", "onbeat-runtime"]),
    ("onbeat-run", &["onbeat-model", "onbeat-runtime", "onbeat-net", "onbeat"]),
    (
        "onbeat-machine",
        &[
            "onbeat-model",
            "onbeat-runtime",
            "onbeat-net",
            "onbeat",
            "onbeat-run",
            "onbeat-configuration",
        ],
    ),
    ("onbeat-capi", &["onbeat-model", "onbeat-runtime", "onbeat"]),
    (
        "onbeat-cli",
        &[
            "onbeat-model",
            "onbeat-description",
            "onbeat-program",
            "onbeat-bounds",
            "onbeat-timing",
            "onbeat-measure",
            "onbeat-report",
            "onbeat-configuration",
            "onbeat-runtime",
            "onbeat-network-code",
            "onbeat-net",
            "onbeat",
            "onbeat-run",
            "onbeat-machine",
        ],
    ),
    ("onbeat-hunt", &[]),
    ("onbeat-sim", &["onbeat", "onbeat-hunt"]),
    ("onbeat-testkit", &[]),
    ("xtask", &["onbeat-hunt"]),
];

/// No crate of the workspace depends on another that it may not know. Dependencies of tests alone
/// are free.
pub(crate) fn edges(tree: &Tree) -> Result<Vec<Finding>> {
    let mut command = MetadataCommand::new();
    command.manifest_path(tree.root.join("Cargo.toml")).no_deps();
    let metadata = command.exec().context("cargo metadata")?;
    let edges: Vec<_> =
        metadata.packages.iter().map(|package| (package.name.to_string(), ours(package))).collect();
    Ok(forbidden(&edges))
}

/// The crates of this repository that `package` needs to be built.
fn ours(package: &Package) -> Vec<String> {
    let built = package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development);
    built.filter(|d| d.path.is_some()).map(|d| d.name.clone()).collect()
}

fn forbidden(edges: &[(String, Vec<String>)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (from, to) in edges {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| name == from) else {
            let message =
                format!("crate `{from}` has no line in ARCHITECTURE.md and xtask's EDGES");
            findings.push(Finding::new("Cargo.toml", None, message));
            continue;
        };
        for to in to.iter().filter(|to| !allowed.contains(&to.as_str())) {
            let message = format!("crate `{from}` must not depend on `{to}`");
            findings.push(Finding::new("Cargo.toml", None, message));
        }
    }
    findings
}

/// Licences under which others' code may be a part of what is built, or of its building.
const LICENCES: [&str; 6] = ["MIT", "Apache-2.0", "BSD-2-Clause", "Zlib", "Unicode-3.0", "MPL-2.0"];

/// Everything that is built comes from here: no branch of a repository, no other registry.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// All that the lock file names, dependencies of dependencies too, comes from the one registry and
/// has a licence that is permitted. For known vulnerabilities an advisory database is needed, which
/// is not always to be had: this rule says nothing about them.
pub(crate) fn supply(tree: &Tree) -> Result<Vec<Finding>> {
    let mut command = MetadataCommand::new();
    command.manifest_path(tree.root.join("Cargo.toml")).other_options(["--locked".to_owned()]);
    let metadata = command.exec().context("cargo metadata")?;
    let others = metadata.packages.iter().filter_map(|package| {
        let source = &package.source.as_ref()?.repr;
        supplied(&package.name, source, package.license.as_deref())
    });
    Ok(others.collect())
}

fn supplied(name: &str, source: &str, licence: Option<&str>) -> Option<Finding> {
    let message = if source != REGISTRY {
        format!("`{name}` comes from {source}: nothing does but from the registry")
    } else if !licence.is_some_and(is_permitted) {
        let licence = licence.unwrap_or("no licence");
        format!("`{name}` has {licence}: only {} are permitted", LICENCES.join(", "))
    } else {
        return None;
    };
    Some(Finding::new("Cargo.lock", None, message))
}

fn is_permitted(licence: &str) -> bool {
    let expression = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX);
    expression.is_ok_and(|expression| {
        expression
            .evaluate(|wanted| wanted.license.id().is_some_and(|id| LICENCES.contains(&id.name)))
    })
}

/// Every crate takes the workspace's lints; one that is a workspace of its own cannot.
pub(crate) fn lints(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| f.path.ends_with("/Cargo.toml")) {
        let manifest: toml::Table = file.text.parse().with_context(|| file.path.clone())?;
        let inherits = manifest.get("lints").and_then(|l| l.get("workspace"));
        let member = manifest.contains_key("package") && !manifest.contains_key("workspace");
        if member && inherits != Some(&toml::Value::Boolean(true)) {
            findings.push(Finding::new(&file.path, None, "add `[lints] workspace = true`"));
        }
    }
    Ok(findings)
}

/// What a Rust program is built with: these are made to be published, and nothing else is.
const PUBLISHED: [&str; 3] = ["onbeat-model", "onbeat-runtime", "onbeat"];

/// Crates that are to be published have what publishing needs, and all others cannot be by mistake.
/// Tests' dependencies are not published. The address of the repository is not asked for: it has
/// none yet that the public can reach.
pub(crate) fn publishing(tree: &Tree) -> Result<Vec<Finding>> {
    let mut command = MetadataCommand::new();
    command.manifest_path(tree.root.join("Cargo.toml")).no_deps();
    let metadata = command.exec().context("cargo metadata")?;
    Ok(metadata.packages.iter().flat_map(unpublishable).collect())
}

fn unpublishable(package: &Package) -> Vec<Finding> {
    let is_private = package.publish.as_ref().is_some_and(Vec::is_empty);
    let mut missing = Vec::new();
    if !PUBLISHED.contains(&package.name.as_str()) {
        missing.extend((!is_private).then(|| "`publish.workspace = true`".to_owned()));
    } else {
        let directory = package.manifest_path.parent();
        let has = |name: &str| directory.is_some_and(|directory| directory.join(name).is_file());
        let fields = [
            (!is_private, "no `publish = false`"),
            (package.description.is_some(), "a description"),
            (package.license.is_some(), "a licence"),
            (package.rust_version.is_some(), "the least version of Rust"),
            (!package.keywords.is_empty(), "keywords"),
            (!package.categories.is_empty(), "categories"),
            (package.readme.as_ref().is_some_and(|name| has(name.as_str())), "a readme"),
            (has("LICENSE-APACHE") && has("LICENSE-MIT"), "the texts of its licences"),
        ];
        let wanted = fields.into_iter().filter(|(fine, _)| !fine);
        missing.extend(wanted.map(|(_, what)| what.to_owned()));
        let built = package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development);
        for dependency in built.filter(|d| d.path.is_some()) {
            let name = &dependency.name;
            if dependency.req.comparators.is_empty() {
                missing.push(format!("a version of `{name}`"));
            }
            if !PUBLISHED.contains(&name.as_str()) {
                missing.push(format!("another crate than `{name}`, which is not published"));
            }
        }
    }
    let finding = |what| {
        let message = format!("crate `{}` needs {what} (xtask's PUBLISHED)", package.name);
        Finding::new("Cargo.toml", None, message)
    };
    missing.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    #[test]
    fn edges_that_are_not_in_the_list_are_found() {
        let edge = |from: &str, to: &str| (from.to_owned(), vec![to.to_owned()]);
        assert!(forbidden(&[edge("onbeat-net", "onbeat-model")]).is_empty());
        for (from, to) in [
            ("onbeat-bounds", "onbeat-measure"),
            ("onbeat-net", "onbeat"),
            ("onbeat-model", "onbeat-runtime"),
            ("onbeat-cli", "onbeat-capi"),
            ("onbeat-new", "onbeat-model"),
        ] {
            assert_eq!(forbidden(&[edge(from, to)]).len(), 1, "{from} → {to}");
        }
    }

    #[test]
    fn a_crate_without_the_workspaces_lints_is_found() {
        let bare = "[package]\nname = 'x'\n";
        let kept = format!("{bare}[lints]\nworkspace = true\n");
        let tree = tree(&[("a/Cargo.toml", bare), ("b/Cargo.toml", &kept)]);
        let findings = lints(&tree).unwrap();
        assert_eq!(findings.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["a/Cargo.toml"]);
    }

    #[test]
    fn others_code_comes_from_the_registry_under_a_permitted_licence() {
        let found = |source, licence| supplied("x", source, licence).map(|found| found.message);
        for right in ["MIT", "MIT/Apache-2.0", "(MIT OR GPL-3.0-only) AND Unicode-3.0"] {
            assert_eq!(found(REGISTRY, Some(right)), None, "{right}");
        }
        for wrong in [None, Some("GPL-3.0-only"), Some("MIT AND SSPL-1.0"), Some("my own")] {
            assert!(found(REGISTRY, wrong).is_some_and(|said| said.contains("permitted")));
        }
        let branch = found("git+https://example.org/x#0123", Some("MIT"));
        assert!(branch.is_some_and(|said| said.contains("registry")));
    }
}
