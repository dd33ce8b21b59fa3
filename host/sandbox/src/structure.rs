//! Bounds on the structure of a component, checked in milliseconds before it is compiled, without validating or decoding code.
//!
//! The engine's own bounds are made for browsers and are ten to a hundred times larger. A component that passes must still be
//! valid and compile within its own bounds. This check refuses components that no toolchain makes, above all those that nest so
//! deeply that a recursive parser runs out of stack.

use capabilities::excerpt;
use wasmparser::{
    BinaryReader, BinaryReaderError, ComponentImport, ComponentType, ComponentTypeDeclaration, CoreType, ElementItems,
    Encoding, FromReader, ModuleTypeDeclaration, Parser, Payload, SectionLimited,
};

use crate::load::{LoadError, StructureBound};

macro_rules! bounds {
    ($($name:ident: $what:literal <= $max:expr;)*) => {
        #[derive(Clone, Copy)]
        enum Counted { $($name),* }

        /// Each bound, in the order of `Counted`.
        const BOUNDS: [StructureBound; [$(Counted::$name),*].len()] = [$(StructureBound { what: $what, max: $max }),*];
    };
}

bounds! {
    Depth: "levels of components inside of each other" <= 16;
    Components: "components inside of it" <= 500;
    Modules: "core modules" <= 200;
    Instances: "instances of modules and components" <= 1_000;
    Types: "types" <= 50_000;
    TypeDepth: "levels of types inside of each other" <= 20;
    Functions: "functions" <= 90_000;
    FunctionBytes: "bytes of one function" <= 1 << 20;
    Imports: "imports" <= 20_000;
    Exports: "exports" <= 50_000;
    Aliases: "aliases and adapted functions" <= 50_000;
    Globals: "globals" <= 50_000;
    Tables: "tables" <= 100;
    Memories: "memories" <= 100;
    Tags: "exception tags" <= 100;
    ElementSegments: "element segments" <= 10_000;
    Elements: "elements of tables" <= 500_000;
    DataSegments: "data segments" <= 50_000;
    DataBytes: "bytes of data segments" <= 48 << 20;
    NameBytes: "bytes of one name" <= 8 << 10;
    CustomSections: "custom sections" <= 2_000;
}

/// # Errors
/// [`LoadError::Structure`] with the first bound that the component exceeds; [`LoadError::Malformed`] if it cannot be read.
pub(crate) fn check(bytes: &[u8]) -> Result<(), LoadError> {
    let mut counts = Counts::default();
    counts.walk(bytes).map_err(|broken| match broken {
        Broken::Bound(bound) => LoadError::Structure(bound),
        Broken::Malformed(error) => LoadError::Malformed(excerpt(error.message())),
    })
}

/// The reason why the walk ends.
enum Broken {
    Bound(StructureBound),
    Malformed(BinaryReaderError),
}

impl From<BinaryReaderError> for Broken {
    fn from(error: BinaryReaderError) -> Self {
        Self::Malformed(error)
    }
}

type Walked = Result<(), Broken>;

#[derive(Default)]
struct Counts([usize; BOUNDS.len()]);

impl Counts {
    fn add(&mut self, counted: Counted, more: usize) -> Walked {
        let count = &mut self.0[counted as usize];
        *count = count.saturating_add(more);
        Self::hold(counted, *count)
    }

    /// Checks one item against its bound.
    fn hold(counted: Counted, found: usize) -> Walked {
        let bound = BOUNDS[counted as usize];
        if found > bound.max { Err(Broken::Bound(bound)) } else { Ok(()) }
    }

    fn name(name: &str) -> Walked {
        Self::hold(Counted::NameBytes, name.len())
    }

    /// Counts the items of a section and checks their names.
    fn named<'a, T: FromReader<'a>>(
        &mut self,
        counted: Counted,
        items: &SectionLimited<'a, T>,
        name: fn(&T) -> &'a str,
    ) -> Walked {
        self.add(counted, items.count() as usize)?;
        items.clone().into_iter().try_for_each(|item| Self::name(name(&item?)))
    }

    fn walk(&mut self, bytes: &[u8]) -> Walked {
        let mut depth = 0;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::Version { encoding, .. } => {
                    depth += 1;
                    Self::hold(Counted::Depth, depth)?;
                    let counted = if encoding == Encoding::Module { Counted::Modules } else { Counted::Components };
                    self.add(counted, 1)?;
                }
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::CustomSection(section) => {
                    Self::name(section.name())?;
                    self.add(Counted::CustomSections, 1)?;
                }
                payload => {
                    self.of_module(&payload)?;
                    self.of_component(bytes, &payload)?;
                }
            }
        }
        Ok(())
    }

    /// Counts sections of core modules.
    fn of_module(&mut self, payload: &Payload<'_>) -> Walked {
        let many = |count: u32| count as usize;
        match payload {
            Payload::TypeSection(types) => self.add(Counted::Types, many(types.count())),
            Payload::FunctionSection(functions) => self.add(Counted::Functions, many(functions.count())),
            Payload::CodeSectionEntry(body) => Self::hold(Counted::FunctionBytes, body.range().len()),
            Payload::TableSection(tables) => self.add(Counted::Tables, many(tables.count())),
            Payload::MemorySection(memories) => self.add(Counted::Memories, many(memories.count())),
            Payload::TagSection(tags) => self.add(Counted::Tags, many(tags.count())),
            Payload::GlobalSection(globals) => self.add(Counted::Globals, many(globals.count())),
            Payload::ImportSection(imports) => {
                self.add(Counted::Imports, many(imports.count()))?;
                for import in imports.clone().into_imports() {
                    let import = import?;
                    Self::name(import.module)?;
                    Self::name(import.name)?;
                }
                Ok(())
            }
            Payload::ExportSection(exports) => self.named(Counted::Exports, exports, |export| export.name),
            Payload::ElementSection(segments) => {
                self.add(Counted::ElementSegments, many(segments.count()))?;
                for segment in segments.clone() {
                    let elements = match segment?.items {
                        ElementItems::Functions(items) => items.count(),
                        ElementItems::Expressions(_, items) => items.count(),
                    };
                    self.add(Counted::Elements, many(elements))?;
                }
                Ok(())
            }
            Payload::DataSection(segments) => {
                self.add(Counted::DataSegments, many(segments.count()))?;
                for segment in segments.clone() {
                    self.add(Counted::DataBytes, segment?.data.len())?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts sections of components.
    fn of_component(&mut self, bytes: &[u8], payload: &Payload<'_>) -> Walked {
        let many = |count: u32| count as usize;
        match payload {
            Payload::InstanceSection(instances) => self.add(Counted::Instances, many(instances.count())),
            Payload::ComponentInstanceSection(instances) => self.add(Counted::Instances, many(instances.count())),
            Payload::ComponentAliasSection(aliases) => self.add(Counted::Aliases, many(aliases.count())),
            Payload::ComponentCanonicalSection(functions) => self.add(Counted::Aliases, many(functions.count())),
            Payload::CoreTypeSection(types) => {
                for ty in types.clone() {
                    self.core_type(&ty?)?;
                }
                Ok(())
            }
            Payload::ComponentTypeSection(types) => {
                let range = types.range();
                let mut reader = BinaryReader::new(bytes.get(range.clone()).unwrap_or_default(), range.start);
                for _ in 0..reader.read_var_u32()? {
                    self.component_type(&mut reader, 1)?;
                }
                Ok(())
            }
            Payload::ComponentImportSection(imports) => {
                self.named(Counted::Imports, imports, |import| import.name.name)
            }
            Payload::ComponentExportSection(exports) => {
                self.named(Counted::Exports, exports, |export| export.name.name)
            }
            _ => Ok(()),
        }
    }

    fn core_type(&mut self, ty: &CoreType<'_>) -> Walked {
        let declared = match ty {
            CoreType::Rec(group) => group.types().len(),
            CoreType::Module(declarations) => {
                let types = declarations.iter().map(|declaration| match declaration {
                    ModuleTypeDeclaration::Type(group) => group.types().len(),
                    _ => 1,
                });
                types.sum()
            }
        };
        self.add(Counted::Types, declared.saturating_add(1))
    }

    /// Counts a type of a component. The parser's own reader recurses into types without a bound, so this function handles
    /// the two kinds with inner types and gives the parser only flat types.
    fn component_type(&mut self, reader: &mut BinaryReader<'_>, depth: usize) -> Walked {
        const COMPONENT: u8 = 0x41;
        const INSTANCE: u8 = 0x42;
        Self::hold(Counted::TypeDepth, depth)?;
        self.add(Counted::Types, 1)?;
        let mut ahead = reader.clone();
        let kind = ahead.read_u8()?;
        if kind != COMPONENT && kind != INSTANCE {
            return self.flat_type(&reader.read()?);
        }
        *reader = ahead;
        for _ in 0..reader.read_var_u32()? {
            self.declaration(reader, depth)?;
        }
        Ok(())
    }

    fn declaration(&mut self, reader: &mut BinaryReader<'_>, depth: usize) -> Walked {
        const TYPE: u8 = 0x01;
        let mut ahead = reader.clone();
        if ahead.read_u8()? == TYPE {
            *reader = ahead;
            return self.component_type(reader, depth + 1);
        }
        match reader.read()? {
            ComponentTypeDeclaration::CoreType(ty) => self.core_type(&ty),
            ComponentTypeDeclaration::Import(ComponentImport { name, .. }) => {
                self.add(Counted::Imports, 1)?;
                Self::name(name.name)
            }
            ComponentTypeDeclaration::Export { name, .. } => {
                self.add(Counted::Exports, 1)?;
                Self::name(name.name)
            }
            ComponentTypeDeclaration::Alias(_) => self.add(Counted::Aliases, 1),
            ComponentTypeDeclaration::Type(_) => Ok(()),
        }
    }

    /// Fields, cases and parameters count as types.
    fn flat_type(&mut self, ty: &ComponentType<'_>) -> Walked {
        use wasmparser::ComponentDefinedType as Defined;
        let parts = match ty {
            ComponentType::Func(function) => function.params.len(),
            ComponentType::Defined(Defined::Record(fields)) => fields.len(),
            ComponentType::Defined(Defined::Variant(cases)) => cases.len(),
            ComponentType::Defined(Defined::Tuple(types)) => types.len(),
            ComponentType::Defined(Defined::Flags(names)) => names.len(),
            ComponentType::Defined(Defined::Enum(names)) => names.len(),
            _ => 0,
        };
        self.add(Counted::Types, parts)
    }
}

#[cfg(test)]
mod tests;
