//! Tasks: functions that are started, with their arguments, in threads of their own.

use super::codes;
use super::edits::{Edits, Rank};
use super::prepare::tokens;
use super::syntax::{children, declared, fields, token};
use super::unit::{Function, Role, Unit};
use onbeat_model::diagnostic::Diagnostic;
use tree_sitter::Node;

/// A parameter: its name, and how it is declared as a member of a struct.
struct Parameter {
    name: String,
    member: String,
}

/// Changes the definitions and declarations of tasks.
pub(super) fn edit(unit: &Unit<'_>, edits: &mut Edits) {
    for function in unit.functions.iter().filter(|f| f.role == Role::Task) {
        if let Some(kind) = function.definition.child_by_field_name("type") {
            edits.replace(kind.byte_range(), "void *");
        }
        let text = format!("{}; ", start_head(unit, function));
        edits.before(function.definition.byte_range(), Rank::Open, &text);
    }
    for prototype in &unit.prototypes {
        if let Some(kind) = prototype.child_by_field_name("type") {
            edits.replace(kind.byte_range(), "void *");
        }
        let is_static = children(*prototype)
            .iter()
            .any(|n| n.kind() == "storage_class_specifier" && unit.words(*n) == "static");
        let storage = if is_static { "static " } else { "" };
        for (index, declarator) in fields(*prototype, "declarator").into_iter().enumerate() {
            let (Some(name), Some(list)) =
                (declared(declarator), declarator.child_by_field_name("parameters"))
            else {
                continue;
            };
            let text = format!(
                "{storage}void timedc_start_{}{}; ",
                unit.words(name),
                one_line(unit.words(list))
            );
            edits.before(prototype.byte_range(), Rank::Open, &text);
            if index > 0 {
                edits.before(declarator.byte_range(), Rank::Open, "*");
            }
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The declarations of a task's parameters, old and new style.
fn declarations<'t>(function: &Function<'t>) -> Vec<Node<'t>> {
    let list = function.declarator.child_by_field_name("parameters").map(children);
    let old = children(function.definition).into_iter().filter(|n| n.kind() == "declaration");
    list.unwrap_or_default().into_iter().chain(old).collect()
}

/// `void timedc_start_f(int a)`.
fn start_head(unit: &Unit<'_>, function: &Function<'_>) -> String {
    let mut list = String::new();
    for (declaration, declarator) in parameters(unit, function) {
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(&specifiers(unit, declaration));
        list.push_str(&one_line(unit.words(declarator)));
    }
    if list.is_empty() {
        list.push_str("void");
    }
    let storage = if function.is_static { "static " } else { "" };
    format!("{storage}void timedc_start_{}({list})", function.name)
}

/// Each parameter's declaration and declarator, in the order of the list.
fn parameters<'t>(unit: &Unit<'t>, function: &Function<'t>) -> Vec<(Node<'t>, Node<'t>)> {
    let mut all: Vec<(Node<'t>, Node<'t>)> = Vec::new();
    for declaration in declarations(function) {
        all.extend(fields(declaration, "declarator").into_iter().map(|d| (declaration, d)));
    }
    let list = function.declarator.child_by_field_name("parameters").map(children);
    let names: Vec<&str> = list
        .unwrap_or_default()
        .into_iter()
        .filter(|n| n.kind() == "identifier")
        .map(|n| unit.words(n))
        .collect();
    let place = |d: &Node<'t>| {
        let name = declared(*d).map_or("", |n| unit.words(n));
        names.iter().position(|n| *n == name)
    };
    all.sort_by_key(|(_, d)| place(d));
    all
}

/// What stands before a declarator, without storage classes.
fn specifiers(unit: &Unit<'_>, declaration: Node<'_>) -> String {
    let mut text = String::new();
    for child in children(declaration) {
        if child.kind().ends_with("declarator") || child.kind() == "identifier" {
            break;
        }
        if child.kind() != "storage_class_specifier" {
            text.push_str(&one_line(unit.words(child)));
            text.push(' ');
        }
    }
    text
}

fn members(unit: &Unit<'_>, function: &Function<'_>) -> Vec<Parameter> {
    let member = |(declaration, declarator): (Node<'_>, Node<'_>)| {
        let name = declared(declarator)?;
        let outer = name.parent()?;
        let words = unit.words(declarator);
        let offset = |at: usize| at - declarator.start_byte();
        let pointer = format!("(*{})", unit.words(name));
        // Arrays and functions are passed as pointers.
        let adjusted = match outer.kind() {
            "array_declarator" => {
                let (from, to) = (offset(name.start_byte()), offset(outer.end_byte()));
                format!("{}{pointer}{}", &words[..from], &words[to..])
            }
            "function_declarator" if outer.start_byte() >= declarator.start_byte() => {
                let (from, to) = (offset(name.start_byte()), offset(name.end_byte()));
                format!("{}{pointer}{}", &words[..from], &words[to..])
            }
            _ => words.to_owned(),
        };
        let member = format!("{}{};", specifiers(unit, declaration), one_line(&adjusted));
        Some(Parameter { name: unit.words(name).to_owned(), member })
    };
    parameters(unit, function).into_iter().filter_map(member).collect()
}

/// The body that the run time calls, what the program calls, and between them the task itself.
pub(super) fn definition(
    unit: &Unit<'_>,
    function: &Function<'_>,
    head: &str,
    tail: &str,
) -> String {
    let (name, task) = (function.name, head);
    let start = start_head(unit, function);
    let members = members(unit, function);
    let starts = unit.options.starts(function.role, name);
    let call = if starts { "timedc_start" } else { "TIMEDC_ELSEWHERE" };
    if members.is_empty() {
        return format!(
            "static void timedc_body_{name}(void *timedc_arguments)\n\
             {{\n\t(void)timedc_arguments;\n\t{name}();\n}}\n\
             static const struct timedc_task timedc_task_{name} = {{{task}, timedc_body_{name}, 0, \
             {tail}}};\n{start}\n{{\n\t{call}(&timedc_task_{name}, 0);\n}}\n"
        );
    }
    let fields: Vec<&str> = members.iter().map(|m| m.member.as_str()).collect();
    let names: Vec<&str> = members.iter().map(|m| m.name.as_str()).collect();
    let passed: Vec<String> = names.iter().map(|n| format!("timedc_given->{n}")).collect();
    format!(
        "struct timedc_arguments_{name} {{ {} }};\n\
         static void timedc_body_{name}(void *timedc_arguments)\n\
         {{\n\tconst struct timedc_arguments_{name} *timedc_given = timedc_arguments;\n\
         \t{name}({});\n}}\n\
         static const struct timedc_task timedc_task_{name} = {{{task}, timedc_body_{name}, \
         sizeof(struct timedc_arguments_{name}), {tail}}};\n\
         {start}\n{{\n\tconst struct timedc_arguments_{name} timedc_given = {{{}}};\n\
         \t{call}(&timedc_task_{name}, &timedc_given);\n}}\n",
        fields.join(" "),
        passed.join(", "),
        names.join(", "),
    )
}

/// Definitions without a type, which C had until 1999: the grammar does not know them as functions.
fn untyped(unit: &Unit<'_>) -> Vec<Diagnostic> {
    let tokens = tokens(unit.text);
    let word = |at: Option<usize>| {
        at.and_then(|at| tokens.get(at)).and_then(|t| unit.text.get(t.clone())).unwrap_or("")
    };
    let known = |at: usize| {
        let range = tokens[at].clone();
        unit.functions
            .iter()
            .any(|f| f.definition.start_byte() < range.start && range.end <= f.body.start_byte())
    };
    let (mut found, mut depth, mut name) = (Vec::new(), 0_usize, None);
    for at in 0..tokens.len() {
        match word(Some(at)) {
            "(" if depth == 0 => {
                let is_first = matches!(word(at.checked_sub(2)), "" | ";" | "}" | "static");
                let called = at.checked_sub(1).filter(|_| is_first);
                name = called.filter(|n| is_identifier(word(Some(*n))));
                depth += 1;
            }
            "(" | "[" => depth += 1,
            "{" => {
                let function = name.take().filter(|n| depth == 0 && !known(*n));
                if let Some(function) = function {
                    let word = word(Some(function));
                    let text = format!("the function `{word}` has no type");
                    let help = format!("write `int {word}(…)`");
                    let at = unit.at(tokens[function].clone());
                    let wrong = Diagnostic::error(codes::FORM, text, at, "here");
                    found.push(wrong.help(help));
                }
                depth += 1;
            }
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                // A declaration, or a macro's use.
                name = name.filter(|_| depth > 0 || !matches!(word(Some(at + 1)), ";" | "," | "="));
            }
            _ => {}
        }
    }
    found
}

/// Whether a word can be a function's name.
fn is_identifier(word: &str) -> bool {
    let begins = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_operator =
        word.starts_with("__") || matches!(word, "_Static_assert" | "static_assert" | "asm");
    begins && !is_operator
}

/// What tasks and functions cannot be.
pub(super) fn check(unit: &Unit<'_>) -> Vec<Diagnostic> {
    let mut found = untyped(unit);
    for function in unit.functions.iter().filter(|f| f.role == Role::Task) {
        let list = function.declarator.child_by_field_name("parameters");
        let Some(dots) = list.and_then(|l| token(l, "variadic_parameter").or(token(l, "...")))
        else {
            continue;
        };
        let text = format!("the task `{}` takes any number of arguments", function.name);
        let help = "name its parameters: the task gets copies";
        found.push(
            Diagnostic::error(codes::FORM, text, unit.at(dots.byte_range()), "here").help(help),
        );
    }
    found
}
