//! Enums whose variants have names in JSON, in configuration or in messages.

/// Makes an enum of named variants, with the list of them and their names.
#[macro_export]
macro_rules! names {
    (
        $(#[$meta:meta])*
        pub enum $enum:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $name:literal),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        pub enum $enum {
            $($(#[$variant_meta])* $variant),+
        }

        impl $enum {
            /// Every value, in the order of the definition.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Their names, in the same order.
            pub const NAMES: [&'static str; Self::ALL.len()] = [$($name),+];

            /// The name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }

            /// The value with this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == name)
            }
        }
    };
}
