//! How far a measurement is, for who looks.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use onbeat_model::time::Span;
use std::time::Duration;

/// A shorter measurement needs no bar.
const BAR_AFTER: Duration = Duration::from_secs(2);

/// Progress in milliseconds; drawn where somebody looks, and only when it takes long.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// Of something that takes about as long as this.
    pub(super) fn new(length: Span, message: impl Into<String>) -> Self {
        let length = (length.as_ns().max(0) / 1_000_000) as u64;
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} [{wide_bar}] {percent:>3} %  {eta} left");
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(message.into());
        Self(bar)
    }

    /// So much more is done.
    pub(super) fn advance(&self, span: Span) {
        self.0.inc((span.as_ns().max(0) / 1_000_000) as u64);
        if self.0.elapsed() > BAR_AFTER && self.0.is_hidden() {
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// What is in progress now.
    pub(super) fn say(&self, message: impl Into<String>) {
        self.0.set_message(message.into());
    }

    /// Takes it away.
    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
