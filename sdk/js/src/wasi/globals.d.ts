// What the build puts in place, and the modules that only a component has.

declare const TOOLGATE_ENGINE: "quickjs" | "starlingmonkey";

declare module "wasi:*";
