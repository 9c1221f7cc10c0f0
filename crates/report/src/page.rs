//! The one skeleton of all pages: head, style, header, footer, light and dark.
//!
//! A page is one file that asks nothing of the network: style, scripts and the chart library are in
//! it, and its content security policy forbids everything else.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use serde::Serialize;

const SKELETON: &str = include_str!("../assets/page.html");
/// What bodies of several pages have, as macros.
const PARTS: &str = include_str!("../assets/parts.html");
/// The clocks that gPTP kept, for the pages that have them.
const CLOCKS: &str = include_str!("../assets/clocks.html");
/// Reservations by protocol, for the pages that have them.
const RESERVATIONS: &str = include_str!("../assets/reservations.html");
/// Stations of Network Code, for the page that has them.
const STATIONS: &str = include_str!("../assets/stations.html");
const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
const CHART_SCRIPT: &str = include_str!("../assets/chart.js");
const CHART_STYLE: &str = include_str!("../assets/uPlot.min.css");
const CHART_LIBRARY: &str = include_str!("../assets/uPlot.iife.min.js");
const CHART_LICENCE: &str = include_str!("../assets/uPlot.LICENSE");

/// What one kind of page adds to the skeleton.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// What kind it is, above the title.
    pub(crate) kicker: &'static str,
    /// The template of its sections, which shows the view as `report`.
    pub(crate) body: &'static str,
    /// How its figures are to be read, at the end.
    pub(crate) notes: &'static str,
    /// Style sheets after the one of all pages.
    pub(crate) styles: &'static [&'static str],
    /// Its script, after those of all pages; may be empty.
    pub(crate) script: &'static str,
    /// Whether its script draws charts.
    pub(crate) has_charts: bool,
}

#[derive(Serialize)]
struct Charts {
    code: &'static str,
    licence: &'static str,
}

impl Page {
    /// The page called `title`, with what its body shows and its script reads. Everything is
    /// escaped where a template does not say otherwise.
    pub(crate) fn render(
        &self,
        title: &str,
        view: &impl Serialize,
        data: &impl Serialize,
    ) -> String {
        let mut environment = environment();
        let templates = [
            ("page", SKELETON),
            ("parts", PARTS),
            ("reservations", RESERVATIONS),
            ("stations", STATIONS),
            ("clocks", CLOCKS),
            ("body", self.body),
        ];
        for (name, template) in templates {
            environment.add_template(name, template).expect("our templates are well-formed");
        }
        let (chart_style, chart_script) =
            if self.has_charts { (CHART_STYLE, CHART_SCRIPT) } else { ("", "") };
        let charts = Charts { code: without_banner(CHART_LIBRARY), licence: CHART_LICENCE };
        let page = context! {
            title,
            kicker => self.kicker,
            notes => self.notes,
            style => [&[chart_style, STYLE], self.styles].concat().concat(),
            script => [SCRIPT, chart_script, self.script].concat(),
            charts => Serde(self.has_charts.then_some(charts)),
            data => for_script(&serde_json::to_string(data).expect("figures are plain JSON")),
            report => Serde(view),
        };
        let skeleton = environment.get_template("page").expect("it was added just now");
        skeleton.render(page).expect("the templates name what the view has")
    }
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
fn without_banner(library: &str) -> &str {
    library.split_once('\n').map_or(library, |(_, code)| code)
}
