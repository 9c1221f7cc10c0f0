//! How much the translator looks at: a test holds it to the length of the program.

#[cfg(test)]
thread_local! {
    static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// So many things are looked at.
pub(super) fn look(count: usize) {
    #[cfg(test)]
    LOOKS.with(|looks| looks.set(looks.get() + count));
    #[cfg(not(test))]
    let _ = count;
}

#[cfg(test)]
mod tests {
    use super::LOOKS;
    use crate::source::Expanded;
    use crate::timedc::{Options, translate_here};
    use onbeat_model::diagnostic::SourceFile;

    /// What a translation looks at.
    fn looks(text: &str) -> usize {
        LOOKS.with(|looks| looks.set(0));
        let files = [SourceFile { path: "p.c".to_owned(), text: text.to_owned() }];
        let made = translate_here(&Expanded::plain(text), &files, Options::default());
        assert_eq!(made.diagnostics, []);
        LOOKS.with(std::cell::Cell::get)
    }

    /// Functions that call each other, the first one last.
    fn chain(count: usize) -> String {
        let step = |n: usize| format!("int f{n}(int a) {{ return f{}(a) + {n}; }}\n", n + 1);
        let all: String = (0..count).map(step).collect();
        format!(
            "int f{count}(int a) {{ return a; }}\n{all}\
             task t() {{ while (1) {{ f0(1); fdelay(10, ms); }} }}\nint main(void) {{ t(); }}\n"
        )
    }

    /// A long task with many variables and timing points.
    fn long(count: usize) -> String {
        let step = |n: usize| {
            format!("int v{n} = x + {n};\nif (v{n} > 3) x += f(v{n});\nfdelay(10, ms);\n")
        };
        let all: String = (0..count).map(step).collect();
        format!(
            "int f(int a) {{ return a; }}\n\
             task t() {{ int x = 0; while (1) {{\n{all}}} }}\nint main(void) {{ t(); }}\n"
        )
    }

    #[test]
    fn a_program_four_times_as_long_takes_four_times_the_work() {
        for shape in [chain, long] {
            let (short, four) = (looks(&shape(100)), looks(&shape(400)));
            assert!(four < 5 * short, "{short} and {four}: {}", shape(1));
        }
    }
}
