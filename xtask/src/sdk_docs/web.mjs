// Prints the public names of @toolgate/web as JSON, for `cargo xtask sdk-docs`. It runs in the folder of the package, and reads
// the declarations that TypeScript makes from the sources.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { declarations, has, ofStatement, textOf } from "./declarations.mjs";

/** The modules of `package.json`. */
const modules = Object.entries(JSON.parse(readFileSync("package.json", "utf8")).exports).map(([path, named]) => ({
  name: `@toolgate/web${path.slice(1)}`,
  file: named["toolgate-source"],
}));

/** Methods that browsers call. */
const CALLED_BY_BROWSERS = /\.(connectedCallback|disconnectedCallback|attributeChangedCallback|observedAttributes)$/;

/** Everything that a promise or an iterator can throw needs a text. */
const fails = (_, { type }) => /^(Promise|AsyncGenerator)</.test(type?.getText() ?? "");

const read = new Map();
/** The types that have an entry because others extend or rename them. */
const bases = new Set();

/** A file: its imports and exports, and the declarations of its names. */
function file(path) {
  if (!read.has(path)) {
    const text = readFileSync(path, "utf8");
    const { outputText } = ts.transpileDeclaration(text, { fileName: path, compilerOptions: { target: "ES2022" } });
    read.set(path, { path, source: declarations(path, text), made: declarations(path, outputText) });
  }
  return read.get(path);
}

/** The file that another one names. */
function beside(path, { text }) {
  return join(dirname(path), text.replace(/\.js$/, ".ts"));
}

const entries = modules.flatMap(({ name, file: path }) => {
  const { source } = file(path);
  // The comment at the beginning of the file is about the module.
  const text = /^\/\*\* (.*) \*\//.exec(source.text)?.[1] ?? "";
  return [{ depth: 2, name, signature: `import { … } from "${name}";`, text }, ...source.statements.flatMap((one) => exportedBy(path, one))];
});
process.stdout.write(JSON.stringify(entries));

/** The entries of an export of names from other files. */
function exportedBy(path, statement) {
  if (!ts.isExportDeclaration(statement)) {
    if (has(statement, ts.SyntaxKind.ExportKeyword)) throw new Error(`${path}: export this from another file: ${statement.getText()}`);
    return [];
  }
  const from = statement.moduleSpecifier && beside(path, statement.moduleSpecifier);
  if (statement.exportClause === undefined) {
    const statements = file(from).made.statements.filter((one) => has(one, ts.SyntaxKind.ExportKeyword));
    return statements.flatMap((one) => ofStatement(one, fails));
  }
  return statement.exportClause.elements.flatMap((element) => {
    const [name, shown] = [(element.propertyName ?? element.name).text, element.name.text];
    const place = from ?? imported(path, name);
    // The types of the OpenAPI document are made for each build, and the document describes them.
    if (place.includes("/generated/")) {
      return [{ depth: 3, name: shown, signature: `export type { ${shown} };`, ...textOf(statement) }];
    }
    return named(place, name).map((entry) => renamed(entry, name, shown));
  });
}

/** The file that a name is imported from, if it is. */
function imported(path, name) {
  const from = file(path).source.statements.find((one) =>
    ts.isImportDeclaration(one) && one.importClause?.namedBindings?.elements?.some((element) => element.name.text === name),
  );
  return from && beside(path, from.moduleSpecifier);
}

/** The entries of one name of a file, after those of the types that it extends or renames. */
function named(path, name) {
  const found = file(path).made.statements.filter((one) => nameOf(one) === name);
  if (found.length === 0) throw new Error(`${path} has no ${name}`);
  const entries = found.flatMap((one) => ofStatement(one, fails)).filter((entry) => !CALLED_BY_BROWSERS.test(entry.name));
  return [...found.flatMap((one) => base(path, one)), ...entries];
}

function nameOf(statement) {
  return statement.name?.text ?? statement.declarationList?.declarations[0].name.text;
}

/** The entries of the types of the package that a declaration extends or renames, each once. */
function base(path, { heritageClauses, type }) {
  const names = [];
  const visit = (node) => {
    if (ts.isIdentifier(node)) names.push(node.text);
    ts.forEachChild(node, visit);
  };
  heritageClauses?.forEach(visit);
  if (type && ts.isTypeReferenceNode(type) && type.typeArguments === undefined) visit(type);
  return names.flatMap((name) => {
    const from = imported(path, name);
    if (!from || from.includes("/generated/") || bases.has(name)) return [];
    bases.add(name);
    return named(from, name);
  });
}

function renamed(entry, name, shown) {
  if (name === shown) return entry;
  return { ...entry, name: shown, signature: entry.signature.replace(name, shown) };
}
