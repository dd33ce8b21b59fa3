//! What authors of plugins have: skeletons, toolchains, and builds in every language.
