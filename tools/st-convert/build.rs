//! What is linked keeps identical code once.

fn main() {
    st_linking::fold_identical_code("bins");
}
