//! One self-contained HTML file: what was measured beside what was promised.
//!
//! The file asks nothing of the network: style, script and the chart library are in it, and its
//! content security policy forbids everything else.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use serde::Serialize;

/// What every page has around it.
const PAGE: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/report.css");
const PAGE_SCRIPT: &str = include_str!("../assets/page.js");
pub(crate) const CHART_STYLE: &str = include_str!("../assets/uPlot.min.css");
pub(crate) const CHART_LIBRARY: &str = include_str!("../assets/uPlot.iife.min.js");
pub(crate) const CHART_LICENCE: &str = include_str!("../assets/uPlot.LICENSE");

/// What a page with charts has of the chart library.
pub(crate) fn chart_parts() -> Value {
    context! {
        chart_style => CHART_STYLE,
        chart_library => without_banner(CHART_LIBRARY),
        chart_licence => CHART_LICENCE,
    }
}

/// A template on what every page has, with what its script reads. Everything in `page` is escaped
/// where the template does not say otherwise.
pub(crate) fn render(
    template: &str,
    page: Value,
    data: &impl Serialize,
    style: &str,
    script: &str,
) -> String {
    let mut environment = environment();
    environment.add_template("page", PAGE).expect("the page's template is well-formed");
    environment.add_template("body", template).expect("the body's template is well-formed");
    let template = environment.get_template("body").expect("it was added just now");
    let around = context! {
        data => for_script(&serde_json::to_string(data).expect("figures are plain JSON")),
        style => [STYLE, style].concat(),
        script => [PAGE_SCRIPT, script].concat(),
    };
    let page = context! { ..page, ..around };
    template.render(page).expect("the template names what the view has")
}

/// Templates in which everything is escaped unless they say otherwise.
pub(crate) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // Names come from descriptions that anyone may have written.
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the usual delimiters differ from each other"));
    environment
}

/// JSON that cannot end the script element it stands in.
fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// The library without its first line, a comment with its web address: the licence, which the page
/// has in full, names the author.
pub(crate) fn without_banner(library: &str) -> &str {
    library.split_once('\n').map_or(library, |(_, code)| code)
}
