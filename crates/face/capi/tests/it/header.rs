//! The header and the crate say the same: both are read, and compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};
use syn::{Expr, Fields, FnArg, Item, Lit, Pat, ReturnType, Stmt, Type};

use crate::install::{built, checkout};

/// All that the two sides must agree about, in C's words: types without blanks before `*`.
#[derive(Debug, Default, PartialEq)]
struct Face {
    /// Name to what it returns and its parameters: `("planish_result", ["const planish_arena* arena", ..])`.
    functions: BTreeMap<String, (String, Vec<String>)>,
    /// Name to enumerators and their values, in order.
    enums: BTreeMap<String, Vec<(String, u32)>>,
    /// Name to fields in order; none where it is opaque.
    structs: BTreeMap<String, Option<Vec<String>>>,
}

// ---- The header

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("*/").expect("a comment ends").1)
}

/// Without preprocessor lines, and without what is for C++ alone.
fn declarations(text: &str) -> Vec<String> {
    let mut code = String::new();
    let mut is_cpp = false;
    for line in without_comments(text).lines() {
        match line.trim() {
            "#ifdef __cplusplus" => is_cpp = true,
            "#endif" => is_cpp = false,
            line if !line.starts_with('#') && !is_cpp => code.extend([line, " "]),
            _ => {}
        }
    }
    let (mut all, mut one, mut depth) = (Vec::new(), String::new(), 0);
    for letter in code.chars() {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if letter == ';' && depth == 0 {
            all.push(one.trim().to_owned());
            one.clear();
        } else {
            one.push(letter);
        }
    }
    assert_eq!(one.trim(), "", "the header ends with a whole declaration");
    all
}

/// `const planish_arena *arena` as (`const planish_arena*`, `arena`).
fn variable(text: &str) -> (String, String) {
    let spaced = text.replace('*', " * ");
    let mut words: Vec<&str> = spaced.split_whitespace().collect();
    let name = words.pop().expect("a variable has a name").to_owned();
    (words.join(" ").replace(" *", "*"), name)
}

fn joined(text: &str) -> String {
    let (kind, name) = variable(text);
    format!("{kind} {name}")
}

fn of_header(text: &str) -> Face {
    let mut face = Face::default();
    for declaration in declarations(text) {
        let Some(typed) = declaration.strip_prefix("typedef ") else {
            let (head, parameters) = declaration.split_once('(').expect("a function");
            let (returns, name) = variable(head);
            let parameters = parameters.strip_suffix(')').expect("parameters end").trim();
            let parameters = if parameters == "void" { "" } else { parameters };
            let parameters = parameters.split(',').filter(|one| !one.trim().is_empty()).map(joined).collect();
            assert!(
                face.functions.insert(name, (returns, parameters)).is_none(),
                "declared once: {declaration}"
            );
            continue;
        };
        let (kind, rest) = typed.split_once(' ').expect("a kind and a name");
        let name = rest.rsplit([' ', '}']).next().expect("a name").to_owned();
        let body =
            rest.split_once('{').map(|(tag, rest)| (tag, rest.rsplit_once('}').expect("a body ends").0));
        let tag = body.map_or_else(|| rest.split(' ').next().unwrap_or_default(), |(tag, _)| tag.trim());
        assert_eq!(tag, name, "the tag is the name");
        let parts = |separator: char| {
            let parts =
                body.map(|(_, body)| body.split(separator).map(str::trim).filter(|part| !part.is_empty()));
            parts.map(Iterator::collect::<Vec<_>>)
        };
        match kind {
            "enum" => {
                let value = |part: &str| {
                    let (name, value) = part.split_once('=').expect("each enumerator has its value");
                    (name.trim().to_owned(), value.trim().parse().expect("a number"))
                };
                let values = parts(',').expect("a body").into_iter().map(value).collect();
                face.enums.insert(name, values);
            }
            "struct" => {
                let fields = parts(';').map(|fields| fields.into_iter().map(joined).collect());
                face.structs.insert(name, fields);
            }
            other => panic!("typedef {other}"),
        }
    }
    face
}

// ---- The crate

fn c_type(kind: &Type) -> String {
    match kind {
        Type::Ptr(pointer) => {
            let is_const = if pointer.const_token.is_some() { "const " } else { "" };
            format!("{is_const}{}*", c_type(&pointer.elem))
        }
        Type::Path(path) => {
            let name = path.path.segments.last().expect("a path has a name").ident.to_string();
            match name.as_str() {
                "u32" => "uint32_t".to_owned(),
                "usize" => "size_t".to_owned(),
                "f64" => "double".to_owned(),
                "c_char" => "char".to_owned(),
                "c_void" => "void".to_owned(),
                ours if ours.starts_with("planish_") => name,
                other => panic!("{other} is no type of the interface"),
            }
        }
        _ => panic!("a type that C does not have"),
    }
}

fn has(attributes: &[syn::Attribute], path: &str, word: &str) -> bool {
    attributes.iter().any(|attribute| {
        let list = attribute.path().is_ident(path).then(|| attribute.meta.require_list().ok()).flatten();
        list.is_some_and(|list| list.tokens.to_string() == word)
    })
}

fn function(item: &syn::ItemFn) -> (String, Vec<String>) {
    let parameter = |argument: &FnArg| {
        let FnArg::Typed(argument) = argument else { panic!("self in an extern function") };
        let Pat::Ident(name) = &*argument.pat else { panic!("a pattern in an extern function") };
        format!("{} {}", c_type(&argument.ty), name.ident)
    };
    let returns = match &item.sig.output {
        ReturnType::Default => "void".to_owned(),
        ReturnType::Type(_, kind) => c_type(kind),
    };
    (returns, item.sig.inputs.iter().map(parameter).collect())
}

fn sources() -> Vec<syn::File> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file: PathBuf| syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap()).collect()
}

fn exported(file: &syn::File) -> impl Iterator<Item = &syn::ItemFn> {
    file.items.iter().filter_map(|item| match item {
        Item::Fn(item) if has(&item.attrs, "unsafe", "no_mangle") => Some(item),
        _ => None,
    })
}

fn of_crate(files: &[syn::File]) -> Face {
    let mut face = Face::default();
    for file in files {
        for item in exported(file) {
            let abi = item.sig.abi.as_ref().and_then(|abi| abi.name.as_ref()).map(syn::LitStr::value);
            assert_eq!(abi.as_deref(), Some("C"), "{}", item.sig.ident);
            face.functions.insert(item.sig.ident.to_string(), function(item));
        }
        for item in &file.items {
            match item {
                Item::Enum(item) if has(&item.attrs, "repr", "C") => {
                    let value = |variant: &syn::Variant| {
                        let Some((_, Expr::Lit(literal))) = &variant.discriminant else {
                            panic!("{}", item.ident)
                        };
                        let Lit::Int(number) = &literal.lit else { panic!("{}", item.ident) };
                        (variant.ident.to_string(), number.base10_parse().unwrap())
                    };
                    face.enums.insert(item.ident.to_string(), item.variants.iter().map(value).collect());
                }
                Item::Struct(item) if item.ident.to_string().starts_with("planish_") => {
                    let is_open = has(&item.attrs, "repr", "C");
                    let Fields::Named(fields) = &item.fields else { panic!("{}", item.ident) };
                    let field = |field: &syn::Field| {
                        format!("{} {}", c_type(&field.ty), field.ident.as_ref().expect("it is named"))
                    };
                    let fields = is_open.then(|| fields.named.iter().map(field).collect());
                    face.structs.insert(item.ident.to_string(), fields);
                }
                _ => {}
            }
        }
    }
    face
}

fn header() -> String {
    fs::read_to_string(checkout().join("include/planish.h")).unwrap()
}

#[test]
fn the_header_is_what_the_crate_exports() {
    let (header, ours) = (of_header(&header()), of_crate(&sources()));
    assert_eq!(header.functions, ours.functions);
    assert_eq!(header.enums, ours.enums);
    assert_eq!(header.structs, ours.structs);
    // The two readers do see something.
    assert!(ours.functions.len() > 20 && ours.enums.len() == 5 && ours.structs.len() > 5, "{ours:?}");
    let alloc = ["planish_arena* arena", "size_t bytes", "size_t align", "void** memory"].map(str::to_owned);
    assert_eq!(ours.functions["planish_arena_alloc"], ("planish_result".to_owned(), alloc.to_vec()));
}

#[test]
fn a_header_that_drifts_is_seen() {
    let whole = header();
    let ours = of_crate(&sources());
    for (from, to) in [
        ("uint32_t watch_ms", "uint64_t watch_ms"),
        (
            "planish_arena *arena, size_t bytes, size_t align",
            "planish_arena *arena, size_t align, size_t bytes",
        ),
        ("PLANISH_ERROR_MAP = 9", "PLANISH_ERROR_MAP = 8"),
        ("const planish_arena *arena, size_t *bytes", "planish_arena *arena, size_t *bytes"),
        ("    uint32_t exact;\n", ""),
        ("planish_result planish_pin_clear(void);", ""),
        ("void planish_arena_free", "planish_result planish_arena_free"),
        (
            "typedef struct planish_achieved planish_achieved;",
            "typedef struct planish_achieved { int a; } planish_achieved;",
        ),
    ] {
        assert_eq!(whole.matches(from).count(), 1, "{from}");
        assert_ne!(of_header(&whole.replace(from, to)), ours, "{from}");
    }
}

/// A function that can fail is one call of the guard and nothing else, so that no panic finds a way round it.
#[test]
fn every_function_that_can_fail_runs_behind_the_guard() {
    let files = sources();
    let can_fail = files.iter().flat_map(exported).filter(|item| function(item).0 == "planish_result");
    let mut count = 0;
    for item in can_fail {
        let is_guarded = match item.block.stmts.as_slice() {
            [Stmt::Expr(Expr::Call(call), None)] => {
                matches!(&*call.func, Expr::Path(path) if path.path.is_ident("guard"))
            }
            _ => false,
        };
        assert!(is_guarded, "{}", item.sig.ident);
        count += 1;
    }
    assert!(count > 15, "{count}");
}

#[test]
fn the_shared_library_exports_what_the_header_declares_and_nothing_else() {
    let bytes = fs::read(built("libplanish.so")).unwrap();
    let library = object::File::parse(&*bytes).unwrap();
    let exported = library.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.is_global());
    let mut exported: Vec<String> = exported.map(|symbol| symbol.name().unwrap().to_owned()).collect();
    exported.sort();
    assert_eq!(exported, of_header(&header()).functions.into_keys().collect::<Vec<_>>());
}

#[test]
fn one_version_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let package = checkout().join("crates/face/capi/package");
    let read = |file: PathBuf| fs::read_to_string(file).unwrap();
    assert!(header().contains(&format!("#define PLANISH_VERSION \"{version}\"\n")));
    assert!(read(package.join("planish.pc")).contains(&format!("\nVersion: {version}\n")));
    let [major, minor] = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")];
    assert_eq!(
        major, "0",
        "from 1.0 on the soname, and what CMake takes for compatible, are the major version alone"
    );
    assert!(
        read(package.join("planish-config.cmake")).contains(&format!("\"libplanish.so.{major}.{minor}\""))
    );
    let cmake = read(package.join("planish-config-version.cmake"));
    assert!(cmake.contains(&format!("PACKAGE_VERSION \"{version}\"")), "{cmake}");
    assert!(cmake.contains(&format!("^{major}\\\\.{minor}(")), "{cmake}");
    // SAFETY: a static text.
    let told = unsafe { std::ffi::CStr::from_ptr(planish::planish_version()) };
    assert_eq!(told.to_str().unwrap(), version);
}
