//! A translation unit's functions and names.

use super::effort::look;
use super::prepare::Prepared;
use super::syntax::{bare, children, declared, fields, token, walk, words};
use super::{Options, codes};
use crate::source::Expanded;
use onbeat_model::diagnostic::{Code, Diagnostic, Origin, SourceFile};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use tree_sitter::Node;

/// A declared variable.
#[derive(Clone, Debug)]
pub(super) struct Variable<'t> {
    pub name: &'t str,
    /// The identifier's place.
    pub place: Range<usize>,
    /// From where to where the name means it.
    pub scope: Range<usize>,
    /// The type in front of the declarator.
    pub kind: Option<Node<'t>>,
    pub declarator: Node<'t>,
    pub is_static: bool,
    pub is_parameter: bool,
    /// What it is initialised with.
    pub value: Option<Node<'t>>,
}

/// What a function is to Timed C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Task,
    Main,
    Plain,
}

/// A function's definition.
#[derive(Debug)]
pub(super) struct Function<'t> {
    pub name: &'t str,
    pub role: Role,
    pub definition: Node<'t>,
    pub declarator: Node<'t>,
    pub body: Node<'t>,
    pub is_static: bool,
    /// Parameters and locals, in the order of the text.
    pub variables: Vec<Variable<'t>>,
    by_name: HashMap<&'t str, Vec<usize>>,
}

/// The whole unit.
pub(super) struct Unit<'t> {
    /// As the preprocessor left it.
    pub text: &'t str,
    pub prepared: &'t Prepared,
    pub expanded: &'t Expanded,
    pub files: &'t [SourceFile],
    /// Where lines end, by file.
    line_ends: Vec<Vec<u32>>,
    pub options: Options,
    pub root: Node<'t>,
    pub functions: Vec<Function<'t>>,
    /// Declarations of tasks without a body.
    pub prototypes: Vec<Node<'t>>,
    /// Functions that have a body, by name: the first of each.
    pub defined: HashMap<&'t str, usize>,
    /// All tasks' names.
    pub tasks: HashSet<&'t str>,
    pub globals: Vec<Variable<'t>>,
    /// Names of functions, variables and types that the program declares at file scope.
    pub names: HashSet<&'t str>,
    enumerators: HashMap<&'t str, Option<i128>>,
    /// Types by the names that `typedef` gives them, none where one name has several.
    typedefs: HashMap<&'t str, Option<Node<'t>>>,
    pub diagnostics: Vec<Diagnostic>,
}

impl<'t> Unit<'t> {
    pub(super) fn new(
        expanded: &'t Expanded,
        files: &'t [SourceFile],
        options: Options,
        prepared: &'t Prepared,
        root: Node<'t>,
    ) -> Self {
        let mut unit = Self {
            text: &expanded.text,
            prepared,
            expanded,
            files,
            line_ends: files.iter().map(|f| line_ends(&f.text)).collect(),
            options,
            root,
            functions: Vec::new(),
            prototypes: Vec::new(),
            defined: HashMap::new(),
            tasks: HashSet::new(),
            globals: Vec::new(),
            names: HashSet::new(),
            enumerators: HashMap::new(),
            typedefs: HashMap::new(),
            diagnostics: Vec::new(),
        };
        unit.read_names();
        unit.read_functions();
        unit
    }

    pub(super) fn words(&self, node: Node<'_>) -> &'t str {
        words(self.text, node.byte_range())
    }

    pub(super) fn at(&self, range: Range<usize>) -> Origin {
        self.expanded.origin(range)
    }

    /// The file and line of a place.
    pub(super) fn line(&self, place: usize) -> (u16, usize) {
        let origin = self.at(place..place + 1);
        let ends = self.line_ends.get(usize::from(origin.file));
        let before = ends.map_or(0, |ends| ends.partition_point(|end| *end < origin.start));
        (origin.file, before + 1)
    }

    pub(super) fn path(&self, file: u16) -> &'t str {
        self.files.get(usize::from(file)).map_or("", |f| f.path.as_str())
    }

    /// Adds an error, and gives it for more to be said.
    pub(super) fn error(
        &mut self,
        code: Code,
        range: Range<usize>,
        message: impl Into<String>,
        label: &str,
        help: &str,
    ) -> &mut Diagnostic {
        let found = Diagnostic::error(code, message, self.at(range), label).help(help);
        self.diagnostics.push(found);
        let last = self.diagnostics.len() - 1;
        &mut self.diagnostics[last]
    }

    fn read_names(&mut self) {
        let (mut top, mut enumerators) = (Vec::new(), Vec::new());
        walk(self.root, |node| {
            match node.kind() {
                "function_definition" | "declaration" | "type_definition" => {
                    let inside = node.parent().is_some_and(|p| p.kind() == "compound_statement");
                    if !inside && !is_for(node) {
                        top.push(node);
                    }
                }
                "enumerator_list" => enumerators.push(node),
                _ => {}
            }
            if node.kind() == "type_definition" {
                self.read_typedef(node);
            }
            true
        });
        for list in enumerators {
            self.read_enumerators(list);
        }
        for node in top {
            for declarator in fields(node, "declarator") {
                if let Some(name) = declared(declarator) {
                    self.names.insert(words(self.text, name.byte_range()));
                }
            }
        }
        // `task` in front of a function's name names no type.
        self.names.remove("");
    }

    /// Enumerators are of type int, unless one of the list does not fit.
    fn read_enumerators(&mut self, list: Node<'t>) {
        let (mut next, mut are_int, mut names) = (Some(0), true, Vec::new());
        for enumerator in children(list) {
            let Some(name) = enumerator.child_by_field_name("name") else { continue };
            if let Some(value) = enumerator.child_by_field_name("value") {
                next = self.constant(value);
            }
            are_int &= next.is_none_or(|n| i32::try_from(n).is_ok());
            let name = self.words(name);
            // Lists of two blocks may have the same name.
            let other = self.enumerators.insert(name, next);
            names.push(name);
            if other.is_some_and(|other| other != next) {
                self.enumerators.insert(name, None);
            }
            next = next.map(|n| n + 1);
        }
        if !are_int {
            self.enumerators.extend(names.into_iter().map(|name| (name, None)));
        }
    }

    fn read_typedef(&mut self, node: Node<'t>) {
        let all = children(node);
        let is_plain = !all.iter().any(|n| n.kind() == "type_qualifier");
        let kind = node.child_by_field_name("type").filter(|_| is_plain);
        for declarator in fields(node, "declarator") {
            let Some(name) = declared(declarator) else { continue };
            let kind = kind.filter(|_| declarator == name);
            let other = self.typedefs.insert(self.words(name), kind);
            if other.is_some() {
                self.typedefs.insert(self.words(name), None);
            }
        }
    }

    /// The type that a name stands for, if `typedef` gives it to a type as it is.
    pub(super) fn named_type(&self, kind: Node<'t>) -> Option<Node<'t>> {
        self.typedefs.get(self.words(kind)).copied().flatten()
    }

    fn read_functions(&mut self) {
        let (mut definitions, mut declarations) = (Vec::new(), Vec::new());
        walk(self.root, |node| match node.kind() {
            "function_definition" => {
                definitions.push(node);
                false
            }
            "declaration" => {
                declarations.push(node);
                false
            }
            _ => true,
        });
        for declaration in declarations {
            self.read_declaration(declaration);
        }
        for definition in definitions {
            self.read_definition(definition);
        }
    }

    /// Whether `task` is the type in a declaration.
    fn is_task(&self, node: Node<'t>) -> bool {
        let kind = node.child_by_field_name("type");
        let is_named =
            kind.is_some_and(|k| k.kind() == "type_identifier" && self.words(k) == "task");
        is_named && !self.names.contains("task")
    }

    fn read_declaration(&mut self, node: Node<'t>) {
        let is_task = self.is_task(node);
        if is_task {
            self.prototypes.push(node);
        }
        for declarator in fields(node, "declarator") {
            let Some(name) = declared(declarator) else { continue };
            if is_task && declarator.kind() == "function_declarator" {
                self.tasks.insert(self.words(name));
            } else if is_task {
                self.not_a_task(node, declarator);
            }
            let end = self.text.len();
            let variable = self.variable(node, declarator, name, end);
            self.globals.push(variable);
        }
    }

    fn not_a_task(&mut self, node: Node<'t>, declarator: Node<'t>) {
        let at = node.start_byte()..declarator.end_byte();
        let help = "write `task name(parameters) { … }`; no pointer leads to a task";
        self.error(codes::FORM, at, "`task` is not followed by a function", "here", help);
    }

    fn variable(
        &self,
        declaration: Node<'t>,
        declarator: Node<'t>,
        name: Node<'t>,
        scope_end: usize,
    ) -> Variable<'t> {
        let storage = |word: &str| {
            let mut cursor = declaration.walk();
            let mut all = declaration.children(&mut cursor);
            all.any(|n| n.kind() == "storage_class_specifier" && self.words(n) == word)
        };
        Variable {
            name: self.words(name),
            place: name.byte_range(),
            scope: declarator.end_byte()..scope_end,
            kind: declaration.child_by_field_name("type"),
            declarator: declarator.child_by_field_name("declarator").map_or(declarator, |inner| {
                if declarator.kind() == "init_declarator" { inner } else { declarator }
            }),
            is_static: storage("static") || storage("extern"),
            is_parameter: false,
            value: declarator.child_by_field_name("value"),
        }
    }

    fn read_definition(&mut self, definition: Node<'t>) {
        let (Some(outer), Some(body)) =
            (definition.child_by_field_name("declarator"), definition.child_by_field_name("body"))
        else {
            return;
        };
        let mut declarator = outer;
        while declarator.kind() == "pointer_declarator" {
            let Some(inner) = declarator.child_by_field_name("declarator") else { return };
            declarator = inner;
        }
        let Some(name) = declared(declarator).map(|n| self.words(n)) else { return };
        if declarator.kind() != "function_declarator" {
            return;
        }
        let is_task = self.is_task(definition);
        if is_task && outer.kind() != "function_declarator" {
            self.not_a_task(definition, outer);
        }
        let is_static = children(definition)
            .iter()
            .any(|n| n.kind() == "storage_class_specifier" && self.words(*n) == "static");
        let role = match name {
            _ if is_task => Role::Task,
            "main" => Role::Main,
            _ => Role::Plain,
        };
        if is_task {
            self.tasks.insert(name);
        }
        let variables = self.variables(definition, declarator, body);
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, variable) in variables.iter().enumerate() {
            by_name.entry(variable.name).or_default().push(index);
        }
        self.defined.entry(name).or_insert(self.functions.len());
        self.functions.push(Function {
            name,
            role,
            definition,
            declarator,
            body,
            is_static,
            variables,
            by_name,
        });
    }

    fn variables(
        &self,
        definition: Node<'t>,
        declarator: Node<'t>,
        body: Node<'t>,
    ) -> Vec<Variable<'t>> {
        let mut found = Vec::new();
        let list = declarator.child_by_field_name("parameters").map(children);
        let old = children(definition).into_iter().filter(|n| n.kind() == "declaration");
        for parameter in list.unwrap_or_default().into_iter().chain(old) {
            for inner in fields(parameter, "declarator") {
                let Some(name) = declared(inner) else { continue };
                let mut variable = self.variable(parameter, inner, name, body.end_byte());
                variable.is_parameter = true;
                found.push(variable);
            }
        }
        walk(body, |node| {
            if node.kind() == "declaration" {
                let end = scope_end(node).unwrap_or(body.end_byte());
                for inner in fields(node, "declarator") {
                    let Some(name) = declared(inner).filter(|_| !is_prototype(inner)) else {
                        continue;
                    };
                    found.push(self.variable(node, inner, name, end));
                }
            }
            true
        });
        found
    }

    /// The value of an enumerator.
    pub(super) fn enumerator(&self, name: &str) -> Option<i128> {
        self.enumerators.get(name).copied().flatten()
    }

    /// The value of a name that is an enumerator where it stands, not a variable.
    pub(super) fn enumerator_at(&self, node: Node<'t>) -> Option<i128> {
        let (name, at) = (self.words(node), node.start_byte());
        let value = self.enumerator(name)?;
        let variable = self.function_at(at).and_then(|f| self.resolve_index(f, name, at));
        variable.is_none().then_some(value)
    }

    /// The function that a place is in.
    pub(super) fn function_at(&self, at: usize) -> Option<&Function<'t>> {
        let behind = self.functions.partition_point(|f| f.definition.start_byte() <= at);
        let function = &self.functions[behind.checked_sub(1)?];
        function.definition.byte_range().contains(&at).then_some(function)
    }

    /// What a name means at a place of a function: the innermost declaration before it.
    pub(super) fn resolve<'u>(
        &'u self,
        function: &'u Function<'t>,
        name: &str,
        at: usize,
    ) -> Option<&'u Variable<'t>> {
        self.resolve_index(function, name, at).map(|index| &function.variables[index])
    }

    /// The same, as its place in the function's list.
    pub(super) fn resolve_index(
        &self,
        function: &Function<'t>,
        name: &str,
        at: usize,
    ) -> Option<usize> {
        let all = function.by_name.get(name)?;
        look(all.len());
        let all = all.iter().copied();
        let seen = all.filter(|index| function.variables[*index].scope.contains(&at));
        seen.max_by_key(|index| function.variables[*index].scope.start)
    }

    /// Whether a call's name is Timed C's, not the program's.
    pub(super) fn is_word(&self, function: &Function<'t>, name: Node<'t>) -> bool {
        let text = self.words(name);
        name.kind() == "identifier"
            && !self.names.contains(text)
            && self.resolve(function, text, name.start_byte()).is_none()
    }

    /// The name of a function that a call calls by its name.
    pub(super) fn callee(&self, call: Node<'t>) -> Option<&'t str> {
        let function = call.child_by_field_name("function").map(bare)?;
        (function.kind() == "identifier").then(|| self.words(function))
    }
}

fn line_ends(text: &str) -> Vec<u32> {
    let ends = text.bytes().enumerate().filter(|(_, octet)| *octet == b'\n');
    ends.map(|(at, _)| u32::try_from(at).unwrap_or(u32::MAX)).collect()
}

/// Whether a declarator declares a function, not a variable.
pub(super) fn is_prototype(declarator: Node<'_>) -> bool {
    let inner = declarator.child_by_field_name("declarator");
    match declarator.kind() {
        "pointer_declarator" => inner.is_some_and(is_prototype),
        "function_declarator" => inner.is_some_and(|n| n.kind() == "identifier"),
        _ => false,
    }
}

/// Where the block ends that a declaration stands in.
fn scope_end(node: Node<'_>) -> Option<usize> {
    let mut parent = node.parent()?;
    while !matches!(parent.kind(), "compound_statement" | "for_statement") {
        parent = parent.parent()?;
    }
    Some(parent.end_byte())
}

fn is_for(node: Node<'_>) -> bool {
    let mut parent = node.parent();
    while let Some(p) = parent {
        match p.kind() {
            "translation_unit" | "declaration_list" => return false,
            "compound_statement" | "function_definition" => return true,
            _ => parent = p.parent(),
        }
    }
    false
}

/// The body's opening brace.
pub(super) fn opening(body: Node<'_>) -> Option<usize> {
    token(body, "{").map(|n| n.end_byte())
}
