//! The functions and types that the MPI's headers declare, through bindgen and syn.

use crate::toolchain::Toolchain;
use std::collections::BTreeMap;
use std::path::Path;

/// A declared function.
pub(crate) struct Function {
    /// Types of its parameters.
    pub(crate) params: Vec<syn::Type>,
    /// Type of its result; `None` for void.
    pub(crate) result: Option<syn::Type>,
}

/// What the headers say.
pub(crate) struct Header {
    /// All functions `MPI_…`, `MPIX_…` and their `PMPI` twins, by name.
    pub(crate) functions: BTreeMap<String, Function>,
    /// The other items (types, numeric constants) as Rust text.
    pub(crate) types: String,
    /// Its binary interface: `openmpi`, `mpich`, or `standard`, that of MPI 5.
    pub(crate) family: &'static str,
}

impl Header {
    /// Reads `mpi.h`, and `mpi-ext.h` where there is one.
    pub(crate) fn read(toolchain: &Toolchain) -> Result<Self, String> {
        let extension = toolchain.includes.iter().any(|d| Path::new(d).join("mpi-ext.h").exists());
        let text = if extension { "#include <mpi.h>\n#include <mpi-ext.h>\n" } else { "#include <mpi.h>\n" };
        let bindings = bindgen::Builder::default()
            .header_contents("st-mpi.h", text)
            .clang_args(toolchain.includes.iter().map(|d| format!("-I{d}")))
            .clang_args(toolchain.defines.iter().map(|d| format!("-D{d}")))
            // Open MPI hides, but still exports, what MPI 3.0 removed.
            .clang_arg("-DOMPI_OMIT_MPI1_COMPAT_DECLS=0")
            .allowlist_function("P?MPIX?_.*")
            .allowlist_type("MPIX?_.*")
            .allowlist_var(
                "OMPI_M.*_VERSION|OMPI_RELEASE_VERSION|MPICH_VERSION|MPICH_NUMVERSION|MPI_ABI_VERSION",
            )
            .layout_tests(false)
            .generate_comments(false)
            .derive_debug(false)
            .generate()
            .map_err(|e| format!("mpi.h: {e}"))?
            .to_string();
        let file = syn::parse_file(&bindings).map_err(|e| format!("bindgen's output: {e}"))?;
        let family = if bindings.contains("OMPI_MAJOR_VERSION") {
            "openmpi"
        } else if bindings.contains("MPICH_VERSION") {
            "mpich"
        } else if bindings.contains("MPI_ABI_VERSION") {
            "standard"
        } else {
            return Err(
                "mpi.h is neither Open MPI's, nor MPICH's, nor that of the standard's binary interface"
                    .into(),
            );
        };
        let mut functions = BTreeMap::new();
        let mut types = String::new();
        for item in file.items {
            match item {
                syn::Item::ForeignMod(block) => {
                    for f in block.items {
                        if let syn::ForeignItem::Fn(f) = f {
                            let (name, function) = function(&f.sig);
                            functions.insert(name, function);
                        }
                    }
                }
                other => types.push_str(&format!("{}\n", quote::quote!(#other))),
            }
        }
        Ok(Self { functions, types, family })
    }
}

fn function(sig: &syn::Signature) -> (String, Function) {
    let params = sig
        .inputs
        .iter()
        .filter_map(|i| match i {
            syn::FnArg::Typed(t) => Some((*t.ty).clone()),
            syn::FnArg::Receiver(_) => None,
        })
        .collect();
    let result = match &sig.output {
        syn::ReturnType::Default => None,
        syn::ReturnType::Type(_, t) => Some((**t).clone()),
    };
    (sig.ident.to_string(), Function { params, result })
}
