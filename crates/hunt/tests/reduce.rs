//! Systems of texts are made small, and stay what they have to be.

use onbeat_hunt::reduce::{Files, reduce};

fn files(all: &[(&str, &str)]) -> Files {
    all.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}

#[test]
fn only_what_the_fault_needs_is_left() {
    let drawn = files(&[
        ("a.c", "int n;\ntask a(void)\n{\n\twhile (1) {\n\t\tfault();\n\t\twork();\n\t}\n}\n"),
        ("b.c", "task b(void)\n{\n\tfault();\n}\n"),
        ("system.toml", "format = 1\n[[host]]\nname = \"h\"\n[[host]]\nname = \"g\"\n"),
    ]);
    let is_closed = |text: &String| text.matches('{').count() == text.matches('}').count();
    let fails = |files: &Files| {
        files.values().all(is_closed)
            && files.get("a.c").is_some_and(|text| text.contains("task a(void)\n{\n"))
            && files["a.c"].contains("fault();")
            && files.get("system.toml").is_some_and(|text| text.contains("\"g\""))
    };
    let small = reduce(drawn.clone(), 1_000, fails);
    let wanted = [
        ("a.c", "task a(void)\n{\n\t\tfault();\n}\n"),
        ("system.toml", "[[host]]\nname = \"g\"\n"),
    ];
    assert_eq!(small, files(&wanted));
    assert_eq!(reduce(drawn.clone(), 0, fails), drawn);
}
