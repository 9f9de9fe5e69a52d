//! What is linked keeps identical code once, and packed relocations.

fn main() {
    st_linking::fold_identical_code("bins");
    st_linking::pack_relocations("bins");
}
