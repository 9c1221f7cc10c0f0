use crate::build::two_hosts;
use onbeat_model::time::Span;
use onbeat_plan::{document, plan};

#[test]
fn the_document_names_everything_and_shows_every_term() {
    let mut net = two_hosts();
    net.noise("h1", "h2");
    net.chain(&[0], Span::from_ms(1));
    let plan = plan(&net.0, true).unwrap();
    let text = serde_json::to_string_pretty(&document(&net.0, &plan)).unwrap();
    insta::assert_snapshot!(text);
}
