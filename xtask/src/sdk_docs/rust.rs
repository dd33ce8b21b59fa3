//! The names of the Rust SDK: what `lib.rs` exports, from its sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, Fields, File, Generics, ImplItem, Item, Lit, Meta, ReturnType, Signature, TraitItem, Type,
    UseTree, Visibility,
};

use super::page::{Entry, MEMBER, METHOD, MODULE, NAME};

/// The name of the crate in paths.
const CRATE: &str = "toolgate_sdk";

/// The files by their path of modules: `testing::attempt`. The root is empty.
type Files = BTreeMap<String, File>;

/// The entries of the crate in this folder.
pub(super) fn read(folder: &Path) -> Result<Vec<Entry>> {
    let mut files = Files::new();
    load(folder, "", &mut files)?;
    crate_entries(&files)
}

fn load(folder: &Path, module: &str, files: &mut Files) -> Result<()> {
    for entry in folder.read_dir().with_context(|| format!("could not read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let inner = if name == "lib" { String::new() } else { joined(module, &name) };
        if path.is_dir() {
            load(&path, &inner, files)?;
        } else {
            let text = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
            let file = syn::parse_file(&text).with_context(|| format!("{} is not Rust", path.display()))?;
            files.insert(inner, file);
        }
    }
    Ok(())
}

fn joined(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

fn crate_entries(files: &Files) -> Result<Vec<Entry>> {
    let root = files.get("").context("there is no lib.rs")?;
    let mut entries = vec![module(CRATE, &format!("use {CRATE}::prelude::*;"), &root.attrs)];
    entries.extend(exported(files, "")?);
    for item in files.values().flat_map(|file| &file.items) {
        if let Item::Macro(found) = item
            && found.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
        {
            let name = found.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            let pattern = found.mac.tokens.clone().into_iter().next();
            let pattern = pattern.map(|tokens| source(tokens.span(), tokens.span())).unwrap_or_default();
            entries.push(entry(NAME, &format!("{name}!"), format!("{name}! {{ {pattern} }}"), &found.attrs));
        }
    }
    for item in &root.items {
        let Item::Mod(found) = item else { continue };
        if !is_public(&found.vis, &found.attrs) {
            continue;
        }
        let name = found.ident.to_string();
        let path = format!("{CRATE}::{name}");
        match (&found.content, files.get(&name)) {
            (Some((_, items)), _) => {
                let uses: Vec<_> = items.iter().map(|item| source(item.span(), item.span())).collect();
                entries.push(module(&path, &uses.join("\n"), &found.attrs));
            }
            (None, Some(file)) => {
                entries.push(module(&path, &format!("use {path};"), &file.attrs));
                entries.extend(exported(files, &name)?);
            }
            (None, None) => bail!("the module {path} has no file"),
        }
    }
    Ok(entries)
}

/// The names that a module defines or exports again.
fn exported(files: &Files, module: &str) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for item in &files[module].items {
        match item {
            Item::Use(found) if is_public(&found.vis, &found.attrs) => {
                for mut path in paths(&found.tree)? {
                    let name = path.pop().unwrap_or_default();
                    let from = match path.first().map(String::as_str) {
                        Some("crate") => path[1..].join("::"),
                        _ => joined(module, &path.join("::")),
                    };
                    let file = files.get(&from).with_context(|| format!("there is no module {from}"))?;
                    let item = file.items.iter().find(|item| name_of(item).as_deref() == Some(&name));
                    let item = item.with_context(|| format!("{from} has no {name}"))?;
                    entries.extend(named(files, &from, item)?);
                }
            }
            // `crate_entries` has the modules of the root.
            Item::Mod(_) if module.is_empty() => {}
            item => entries.extend(named(files, module, item)?),
        }
    }
    Ok(entries)
}

/// The paths of a `use`.
fn paths(tree: &UseTree) -> Result<Vec<Vec<String>>> {
    Ok(match tree {
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            let longer = |mut rest: Vec<String>| {
                rest.insert(0, first.clone());
                rest
            };
            paths(&path.tree)?.into_iter().map(longer).collect()
        }
        UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        UseTree::Group(group) => group.items.iter().map(paths).collect::<Result<Vec<_>>>()?.concat(),
        UseTree::Rename(_) | UseTree::Glob(_) => return Err(unknown(tree)),
    })
}

/// A public item must not be missing on the page because this reader does not know its kind.
fn unknown(item: &impl Spanned) -> anyhow::Error {
    let text = source(item.span(), item.span());
    anyhow!(
        "`cargo xtask sdk-docs` does not know this kind of public item: {}",
        text.lines().next().unwrap_or_default()
    )
}

/// The visibility and the attributes of items of the kinds that [`named`] does not know.
fn of_unknown_kind(item: &Item) -> Option<(&Visibility, &[Attribute])> {
    match item {
        Item::Const(found) => Some((&found.vis, &found.attrs)),
        Item::ExternCrate(found) => Some((&found.vis, &found.attrs)),
        Item::Mod(found) => Some((&found.vis, &found.attrs)),
        Item::Static(found) => Some((&found.vis, &found.attrs)),
        Item::TraitAlias(found) => Some((&found.vis, &found.attrs)),
        Item::Type(found) => Some((&found.vis, &found.attrs)),
        Item::Union(found) => Some((&found.vis, &found.attrs)),
        _ => None,
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Struct(found) => &found.ident,
        Item::Enum(found) => &found.ident,
        Item::Trait(found) => &found.ident,
        Item::Fn(found) => &found.sig.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The entries of a public item: itself, its members and its methods.
fn named(files: &Files, file: &str, item: &Item) -> Result<Vec<Entry>> {
    if of_unknown_kind(item).is_some_and(|(visibility, attributes)| is_public(visibility, attributes)) {
        return Err(unknown(item));
    }
    let Some(name) = name_of(item) else { return Ok(Vec::new()) };
    Ok(match item {
        Item::Struct(found) if is_public(&found.vis, &found.attrs) => {
            let head = head(found.vis.span(), found.ident.span(), &found.generics);
            let mut entries = vec![entry(NAME, &name, head, &found.attrs)];
            for field in found.fields.iter().filter(|field| is_public(&field.vis, &field.attrs)) {
                let ident = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
                let signature = format!("{ident}: {}", source(field.ty.span(), field.ty.span()));
                entries.push(entry(MEMBER, &format!("{name}.{ident}"), signature, &field.attrs));
            }
            entries.extend(methods(files, file, &name)?);
            entries
        }
        Item::Enum(found) if is_public(&found.vis, &found.attrs) => {
            let head = head(found.vis.span(), found.ident.span(), &found.generics);
            let mut entries = vec![entry(NAME, &name, head, &found.attrs)];
            entries.extend(found.variants.iter().map(|variant| of_variant(&name, variant)));
            entries.extend(methods(files, file, &name)?);
            entries
        }
        Item::Trait(found) if is_public(&found.vis, &found.attrs) => {
            let end = found.supertraits.last().map_or_else(|| found.ident.span(), |last| last.span());
            let mut entries = vec![entry(NAME, &name, source(found.vis.span(), end), &found.attrs)];
            for item in &found.items {
                let method = match item {
                    TraitItem::Fn(method) => method,
                    TraitItem::Const(found) if is_hidden(&found.attrs) => continue,
                    TraitItem::Type(found) if is_hidden(&found.attrs) => continue,
                    _ => return Err(unknown(item)),
                };
                if !is_hidden(&method.attrs) {
                    let signature = source(method.sig.span(), method.sig.span());
                    let name = format!("{name}::{}", method.sig.ident);
                    entries.push(function(METHOD, &name, signature, &method.sig, &method.attrs));
                }
            }
            entries
        }
        Item::Fn(found) if is_public(&found.vis, &found.attrs) => {
            vec![function(NAME, &name, source(found.vis.span(), found.sig.span()), &found.sig, &found.attrs)]
        }
        _ => Vec::new(),
    })
}

/// A case of an enum. Its fields are part of its text.
fn of_variant(owner: &str, variant: &syn::Variant) -> Entry {
    let name = format!("{owner}::{}", variant.ident);
    let Fields::Named(fields) = &variant.fields else {
        let end = if variant.fields.is_empty() { variant.ident.span() } else { variant.fields.span() };
        return entry(MEMBER, &name, source(variant.ident.span(), end), &variant.attrs);
    };
    let (mut inside, mut texts) = (Vec::new(), Vec::new());
    for field in &fields.named {
        let ident = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        texts.push(format!("`{ident}`: {}", docs(&field.attrs)));
        inside.push(format!("{ident}: {}", source(field.ty.span(), field.ty.span())));
    }
    let signature = format!("{} {{ {} }}", variant.ident, inside.join(", "));
    let mut entry = entry(MEMBER, &name, signature, &variant.attrs);
    entry.text = format!("{} {}", entry.text, texts.join(" "));
    entry
}

/// The public methods of a type: those beside it, and those in files without a type of this name.
fn methods(files: &Files, file: &str, name: &str) -> Result<Vec<Entry>> {
    let has_another = |file: &File| file.items.iter().any(|item| name_of(item).as_deref() == Some(name));
    let mut entries = Vec::new();
    let own_first = [(file, &files[file])].into_iter().chain(files.iter().map(|(path, file)| (path.as_str(), file)));
    for (at, (path, items)) in own_first.enumerate() {
        if at > 0 && (path == file || has_another(items)) {
            continue;
        }
        for item in &items.items {
            let Item::Impl(found) = item else { continue };
            if found.trait_.is_some() || is_left_out(&found.attrs) || !is_type(&found.self_ty, name) {
                continue;
            }
            for item in &found.items {
                let method = match item {
                    ImplItem::Fn(method) if is_public(&method.vis, &method.attrs) => method,
                    ImplItem::Const(constant) if is_public(&constant.vis, &constant.attrs) => {
                        return Err(unknown(item));
                    }
                    _ => continue,
                };
                let mut signature = source(method.vis.span(), method.sig.span());
                // The same type with other arguments can have other methods.
                if found.generics.lifetimes().next().is_none() && !has_no_arguments(&found.self_ty) {
                    let head = source(found.impl_token.span(), found.self_ty.span());
                    signature = format!("// {head}\n{signature}");
                }
                let name = format!("{name}::{}", method.sig.ident);
                entries.push(function(METHOD, &name, signature, &method.sig, &method.attrs));
            }
        }
    }
    Ok(entries)
}

fn is_type(found: &Type, name: &str) -> bool {
    matches!(found, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

fn has_no_arguments(found: &Type) -> bool {
    matches!(found, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.arguments.is_none()))
}

fn is_public(visibility: &Visibility, attributes: &[Attribute]) -> bool {
    matches!(visibility, Visibility::Public(_)) && !is_hidden(attributes) && !is_left_out(attributes)
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| is_list(attribute, "doc", &["hidden"]))
}

/// Whether natives do not have it. The page has the names that tests and plugins share.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| is_list(attribute, "cfg", &["test", "target_family = \"wasm\""]))
}

fn is_list(attribute: &Attribute, name: &str, contents: &[&str]) -> bool {
    match &attribute.meta {
        Meta::List(list) => list.path.is_ident(name) && contents.contains(&list.tokens.to_string().as_str()),
        _ => false,
    }
}

fn module(name: &str, signature: &str, attributes: &[Attribute]) -> Entry {
    entry(MODULE, name, signature.to_owned(), attributes)
}

fn function(depth: usize, name: &str, signature: String, of: &Signature, attributes: &[Attribute]) -> Entry {
    let fails = matches!(&of.output, ReturnType::Type(_, returned) if is_type(returned, "Result"));
    Entry { fails, ..entry(depth, name, signature, attributes) }
}

fn entry(depth: usize, name: &str, signature: String, attributes: &[Attribute]) -> Entry {
    let (text, errors) = sections(&docs(attributes));
    Entry { depth, name: name.to_owned(), signature, text, errors, fails: false }
}

fn head(begin: Span, ident: Span, generics: &Generics) -> String {
    source(begin, generics.gt_token.as_ref().map_or(ident, |end| end.span()))
}

/// The text of a source from one place to another, without its indentation.
fn source(begin: Span, end: Span) -> String {
    let text = begin.join(end).and_then(|span| span.source_text()).unwrap_or_default();
    let later = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let depth = later.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + "\n" + line.get(depth..).unwrap_or_default())
}

/// The doc comment.
fn docs(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => {
                    Some(text.value().trim_end().strip_prefix(' ').map_or_else(|| text.value(), str::to_owned))
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<_> = attributes.iter().filter_map(line).collect();
    lines.join("\n").trim().to_owned()
}

/// The text without the sections about errors, and the errors.
fn sections(docs: &str) -> (String, String) {
    let (mut text, mut errors, mut in_errors, mut in_code) = (String::new(), String::new(), false, false);
    for line in docs.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
            text += if in_code && line == "```" { "```rust" } else { line };
            text.push('\n');
        } else if in_code && (line == "#" || line.starts_with("# ")) {
            // A line that examples hide.
        } else if line == "# Errors" {
            in_errors = true;
        } else if line == "# Panics" {
            in_errors = false;
            text += "**Panics.** ";
        } else {
            let line = if in_code { line.to_owned() } else { without_links(line) };
            let part = if in_errors { &mut errors } else { &mut text };
            part.push_str(&line);
            part.push('\n');
        }
    }
    (text.trim().to_owned(), errors.trim().to_owned())
}

/// A line whose links to names are only names. Such links work in the documentation of cargo.
fn without_links(line: &str) -> String {
    let mut parts = line.split("[`");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((name, rest)) = part.split_once("`]") else {
            plain += &format!("[`{part}");
            continue;
        };
        let rest = match rest.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, rest)) => rest,
            None => rest,
        };
        plain += &format!("`{}`{rest}", name.strip_prefix("mod@").unwrap_or(name));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(sources: &[(&str, &str)]) -> Files {
        sources.iter().map(|(path, text)| ((*path).to_owned(), syn::parse_file(text).unwrap())).collect()
    }

    #[test]
    fn exported_names_have_their_methods() {
        let root = "//! Boxes.\nmod a;\n#[doc(hidden)]\npub mod guest;\npub mod deep;\npub use a::{Box, Kind};\n";
        let a = "/// A box, see [`Kind`](crate::Kind).\npub struct Box<T> {\n    /// Its size.\n    pub size: u8,\n    inner: T,\n}\n\
                 /// Kinds.\npub enum Kind {\n    /// Good.\n    Good(u8),\n    /// Bad.\n    Bad {\n        /// The reason.\n        why: u8,\n    },\n}\n\
                 pub struct Secret;\nimpl Box<u8> {\n    /// Opens it.\n    ///\n    /// # Errors\n    /// [`Kind`] if it is shut.\n    \
                 pub fn open(\n        &self,\n    ) -> Result<(), Kind> {\n        Ok(())\n    }\n    pub(crate) fn hide(&self) {}\n}\n";
        let deep = "//! Deep ones.\n/// Another box.\npub struct Box;\nimpl Box {\n    pub fn silent(&self) {}\n}\n";
        let entries = crate_entries(&files(&[("", root), ("a", a), ("deep", deep)])).unwrap();
        let shown: Vec<_> = entries.iter().map(|one| (one.name.as_str(), one.signature.as_str())).collect();
        let expected = [
            ("toolgate_sdk", "use toolgate_sdk::prelude::*;"),
            ("Box", "pub struct Box<T>"),
            ("Box.size", "size: u8"),
            ("Box::open", "// impl Box<u8>\npub fn open(\n    &self,\n) -> Result<(), Kind>"),
            ("Kind", "pub enum Kind"),
            ("Kind::Good", "Good(u8)"),
            ("Kind::Bad", "Bad { why: u8 }"),
            ("toolgate_sdk::deep", "use toolgate_sdk::deep;"),
            ("Box", "pub struct Box"),
            ("Box::silent", "pub fn silent(&self)"),
        ];
        assert_eq!(shown, expected);
        assert_eq!(entries[1].text, "A box, see `Kind`.");
        assert_eq!((entries[3].errors.as_str(), entries[3].fails), ("`Kind` if it is shut.", true));
        assert_eq!(entries[6].text, "Bad. `why`: The reason.");
        assert_eq!(entries[9].text, "");
    }

    #[test]
    fn public_item_of_an_unknown_kind_is_an_error() {
        let unknown = [
            "pub const BIG: u8 = 1;",
            "pub static BIG: u8 = 1;",
            "pub type Big = u8;",
            "pub union Big { a: u8 }",
            "pub trait Big { const SIZE: u8; }",
            "pub struct Big;\nimpl Big {\n    pub const SIZE: u8 = 1;\n}",
            "pub use deep::Big as Small;",
            "pub use deep::*;",
        ];
        for item in unknown {
            let error = crate_entries(&files(&[("", item)])).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("does not know this kind of public item: "), "{item}: {error}");
        }
        let nested = files(&[("", "pub mod deep;"), ("deep", "pub mod deeper {}")]);
        assert!(crate_entries(&nested).is_err(), "modules of modules have no entry");
        let private = "const A: u8 = 1;\npub(crate) type B = u8;\n#[doc(hidden)]\npub static C: u8 = 1;\n";
        assert_eq!(crate_entries(&files(&[("", private)])).unwrap().len(), 1, "only the crate itself");
    }

    #[test]
    fn sections_and_examples_are_markdown() {
        let (text, errors) = sections("One.\n\n```\n# hidden\nlet x = 1;\n```\n# Panics\nNever.\n\n# Errors\nAlways.");
        assert_eq!(text, "One.\n\n```rust\nlet x = 1;\n```\n**Panics.** Never.");
        assert_eq!(errors, "Always.");
    }
}
