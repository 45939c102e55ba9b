//! Every command as a user types it, with what it prints to the letter. `TRYCMD=overwrite cargo test` writes it anew.

#[test]
fn commands_print_what_they_should() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").case("../../README.md").case("../../docs/*.md");
}
