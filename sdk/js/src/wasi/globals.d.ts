// Constants that the build replaces, and modules that exist only in a component.

declare const TOOLGATE_ENGINE: "quickjs" | "starlingmonkey";

declare module "wasi:*";
