//! Models in Lingua Franca: what the grammar has is read, and everything else is an error.

use onbeat_description::lf;
use proptest::prelude::*;

/// Every construct of the grammar at least once.
const EVERY_CONSTRUCT: &str = include_str!("lf/every-construct.lf");

/// The place of the error, as line and column from 1.
fn place(text: &str) -> Option<(usize, usize)> {
    let wrong = lf::syntax(text).err()?;
    assert!(!wrong.message.is_empty() && !wrong.help.is_empty(), "{wrong:?}");
    let (at, _) = wrong.at.expect("every error of syntax has a place");
    let before = &text[..at.start as usize];
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
    Some((before.matches('\n').count() + 1, column))
}

#[test]
fn every_construct_of_the_grammar_is_read() {
    assert_eq!(lf::syntax(EVERY_CONSTRUCT), Ok(()));
}

#[test]
fn statements_of_all_targets_are_read() {
    for text in [
        // C and CCpp
        "target C { timeout: 1 sec, fast: true } main reactor { reaction(startup) {= f(\"}\"); \
         =} }",
        "target CCpp; reactor A { state x: std::vector<int>; state y: int* ; state z: char[16] }",
        "target C {files: [\"a.c\", b/c.h], cmake-include: ../x.cmake,} reactor { }",
        "target C {tracing: {trace-file-name: \"a b\"}, logging: DEBUG, workers: 1} reactor A {}",
        // Cpp
        "target Cpp reactor A<T>(x: T{}, y: int(3), z: {= T* =} = nullptr_) { input p: {= T =} }",
        "target Cpp reactor A { state v: std::vector<std::string>{\"a\", \"b\",}; }",
        "target Cpp reactor A { public preamble {=\n#include <a>\n=} private preamble {= =} }",
        "target Cpp reactor A { method f(x: int, y): double {= return x; =} const method g() {= \
         =} }",
        // Python
        "target Python reactor A(x=0, y=[1, 2, -3.5], z = {= {'a': 1} =}) { input a; output b }",
        "target Python {files: include/hello.py} # a comment\nreactor A { timer t(0, 5 hours) }",
        // TypeScript
        "target TypeScript { docker: false } reactor A { output y: {= string | number =} }",
        // Rust
        "target Rust { build-type: \"Release\", cargo-features: [\"cli\"] } reactor A { state \
         v(0) }",
        "target Rust reactor A(n: usize(4)) { state s: {= Vec<u32> =} = {= vec![] =} }",
        // micro-LF
        "target uC { platform: native } federated reactor {\n\
         @interface_custom(name=\"C\", include=\"c.h\", args=\"1\") a = new A()\n\
         @link(left=\"C\", right=\"C\", server_port=1042) @maxwait(forever) \
         a.x -> b.y after 1 ms }",
        // older and newer forms of one thing
        "target C reactor A { reaction(x) {= =} STP(10 ms) {= =} deadline(5 ms) {= =} }",
        "target C reactor A { reaction(x) {= =} STAA(0) {= =} reaction(y) {= =} tardy {= =} }",
        "target C reactor A { reaction(x) {= =} tardy reaction(y) {= =} maxwait(t) {= =} }",
        "target C reactor A { reaction(x) -> y reaction late(x) a.b -> y; mutation(z) {= =} }",
        "target C reactor A { reaction() {= =} reaction(a as b, interleaved(c.d)) e as f {= =} }",
        "target C reactor A { action a; logical action b(0, 1 ms, \"drop\"): int; }",
        "target C realtime main reactor M at user@host.local:80 extends A, B { }",
        "target C main realtime reactor M at [::1]:80 { }",
        "target C federated reactor { a = new A() at 10.0.0.1; b = new[2] B<int, {= T* \
         =}>(c{1,2}) }",
        "target C reactor A { (a.x, b)+ ~> interleaved(c.y), d after p serializer \"proto\" }",
        "target C reactor A { w = new[widthof(a.x) + n + 2 + {= k =}] B(); input[] i: int[] }",
        "target C reactor A { state s = 1\n s2 = new B()\n state r = -1 reset state u: time = 5 \
         s }",
        "target C reactor A { state n: int = 0\n s = new S() b.x -> s.y }",
        "target C reactor A { watchdog w(10 ms) -> x, reset(M) {= =} reaction(w) -> history(M) \
         {= =} }",
        "target C reactor A { initial mode M { timer t mode_x = new X() } mode { a -> b } }",
        "target C import A as B, C from \"../x y.lf\"; import D from <lib/D-e.lf> reactor {}",
        "target Rust reactor A(p: i32[](1, 2), q: Vec<Duration>(1 msec, 2 msec), g: time[](1 s)) \
         {\n\
         state t: Vec<Vec<{= Duration =}>>(q, g) state n: f64 = 6.02e+23 state c = -1.6E-19\n\
         state m = -.01e0 state e: f64 = .9E5 input in: Vec<time> output struct: u32 \
         in -> struct }",
        "target Cpp reactor A(a: T(), b: T({}), c: T{}, d: T = {4, 2}) { state s: T{a} }",
        "target C { clock-sync: on,  // a comment\n timeout: 1sec, x: 0.5 }; reactor A {\n\
         b.x,\n b.y\n -> z\n timer t(1sec, 100ms); nodes.out -> interleaved (nodes.in) }",
        "reactor A {} // no target",
        "target C @label(\"x\") @enclave(each=true, workers=0..4,) @sparse reactor A { }",
        "target C ''' a long\ncomment ''' reactor A { state c: char = 'x' state d = '\\n' }",
    ] {
        assert_eq!(lf::syntax(text), Ok(()), "{text}");
    }
}

#[test]
fn unknown_syntax_is_an_error_at_its_place() {
    for (text, at) in [
        ("target C", (1, 9)),
        ("target C reactor A {", (1, 21)),
        ("target C reactor A { inptu x: int }", (1, 28)),
        ("target C reactor A {\n  timer (0) }", (2, 9)),
        ("target C reactor A { reaction x {= =} }", (1, 33)),
        ("target C reactor A { reaction(a) {= =} until(1 ms) {= =} }", (1, 45)),
        ("target C reactor A { a.b => c.d }", (1, 26)),
        ("target C reactor A { a = B() }", (1, 26)),
        ("target C reactor A { a = new B() at -x }", (1, 37)),
        ("target C reactor A { a = new B(x) }", (1, 33)),
        ("target C reactor A { timer t(0, 5 parsecs) }", (1, 35)),
        ("target C reactor A { timer t(0, 9999999999 weeks) }", (1, 33)),
        ("target C reactor A { state x: unsigned int }", (1, 44)),
        ("target C { a 1 } reactor A { }", (1, 14)),
        ("target C { a: } reactor A { }", (1, 15)),
        ("target C reactor A { @ reaction(x) {= =} }", (1, 24)),
        ("target C reactor A { reaction(x) {= }", (1, 34)),
        ("target C reactor A { output ö }", (1, 29)),
        ("target C reactor A { after b.x -> c.y }", (1, 22)),
        ("target C main main reactor A { }", (1, 15)),
        ("target C reactor A { mode M { input x: int } }", (1, 31)),
        ("target C import A from reactor A { }", (1, 24)),
    ] {
        assert_eq!(place(text), Some(at), "{text}");
    }
}

#[test]
fn nesting_has_a_limit() {
    let deep = |n: usize| {
        let list = "(".repeat(n) + "1" + &")".repeat(n);
        lf::syntax(&format!("target C reactor A {{ state x = {list} }}"))
    };
    assert_eq!(deep(60), Ok(()));
    for n in [65, 100_000] {
        assert_eq!(deep(n).expect_err("too deep").code.as_str(), "OB1511", "{n}");
    }
    for open in ["[", "{a:", "<"] {
        let text = format!("target C {{ a: {} }} reactor A {{}}", open.repeat(100_000));
        assert!(lf::syntax(&text).is_err());
        let text = format!("target C reactor A {{ input x: T{} }}", "<T".repeat(100_000));
        assert!(lf::syntax(&text).is_err());
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in ".*") {
        let _ = lf::syntax(&text);
    }

    /// Pieces of a right model in any order reach further into the grammar than random text.
    #[test]
    fn no_pieces_of_a_model_make_the_parser_panic(
        pieces in proptest::collection::vec((0..EVERY_CONSTRUCT.len(), 1..60_usize), 0..40)
    ) {
        let clamp = |at: usize| {
            let mut before = (0..=at.min(EVERY_CONSTRUCT.len())).rev();
            before.find(|at| EVERY_CONSTRUCT.is_char_boundary(*at))
        };
        let piece = |(at, n)| &EVERY_CONSTRUCT[clamp(at).unwrap_or(0)..clamp(at + n).unwrap_or(0)];
        let text: String = pieces.into_iter().map(piece).collect();
        let _ = lf::syntax(&text);
    }

    /// What stops in the middle of a model is an error, unless only blanks and comments are left.
    #[test]
    fn a_model_without_its_end_is_an_error(end in 0..EVERY_CONSTRUCT.len()) {
        prop_assume!(EVERY_CONSTRUCT.is_char_boundary(end));
        let last = EVERY_CONSTRUCT.rfind('}').expect("a brace");
        let text = &EVERY_CONSTRUCT[..end];
        let begun = EVERY_CONSTRUCT.rfind("federated reactor").expect("the last reactor");
        if end > begun && end <= last {
            prop_assert!(lf::syntax(text).is_err());
        }
    }
}
