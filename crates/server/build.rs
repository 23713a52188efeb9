//! A release build embeds the console; a file more or less in its folder must be noticed. Debug builds read from disk,
//! and an edit there should cost nobody a compilation.

fn main() {
    let embeds = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    println!("cargo:rerun-if-changed={}", if embeds { "../../console" } else { "build.rs" });
}
