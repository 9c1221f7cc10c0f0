//! Gives the shared library the name by which programs find it: libonbeat.so.MAJOR.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets it");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libonbeat.so.{major}");
}
