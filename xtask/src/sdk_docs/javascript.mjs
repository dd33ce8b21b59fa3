// Prints the public names of @toolgate/sdk as JSON, for `cargo xtask sdk-docs`. It runs in the folder of the SDK, and reads
// the declarations that TypeScript reads.

import { readFileSync } from "node:fs";
import ts from "typescript";

/** The modules of `package.json` with types, and the global names. */
const exported = Object.entries(JSON.parse(readFileSync("package.json", "utf8")).exports);
const modules = exported.flatMap(([path, { types }]) =>
  types ? [{ name: `@toolgate/sdk${path.slice(1)}`, file: types }] : [],
);
modules.push({ name: "Global names", file: "src/globals.d.ts" });

const entries = modules.flatMap(({ name, file }) => {
  const source = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  // The comment at the beginning of the file is about the module.
  const comment = /^(\/\/ .*\n)+/.exec(source.text)?.[0] ?? "";
  const text = comment.replace(/^\/\/ /gm, "");
  const signature = name.startsWith("@") ? `import { … } from "${name}";` : "";
  return [{ depth: 2, name, signature, text: text.trim() }, ...merged(source.statements.flatMap(ofStatement))];
});
process.stdout.write(JSON.stringify(entries));

/** Puts the overloads of a function into one entry, with the text of the first one. */
function merged(found) {
  const kept = [];
  for (const one of found) {
    const first = kept.find(({ depth, name }) => depth === one.depth && depth === 3 && name === one.name);
    if (first) first.signature += `\n${one.signature}`;
    else kept.push(one);
  }
  return kept;
}

function ofStatement(node) {
  if (ts.isFunctionDeclaration(node)) return [{ ...described(3, node.name.text, node), fails: true }];
  if (ts.isTypeAliasDeclaration(node)) return [described(3, node.name.text, node), ...silentMembers(node)];
  if (ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node)) {
    const head = node.getText().slice(0, node.members.pos - node.getStart() - 1);
    const entry = { ...described(3, node.name.text, node), signature: head.trim() };
    return [entry, ...node.members.flatMap((member) => ofMember(node.name.text, member))];
  }
  if (!isExported(node)) return [];
  // A public name must not be missing on the page because this reader does not know its kind.
  const line = node.getText().split("\n")[0];
  throw new Error(`\`cargo xtask sdk-docs\` does not know this kind of public name: ${line}`);
}

function isExported(node) {
  return ts.isExportDeclaration(node) || ts.isExportAssignment(node) || node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
}

function ofMember(owner, member) {
  if (isAbsent(member) || (member.name && ts.isComputedPropertyName(member.name))) return [];
  if (ts.isMethodSignature(member) || ts.isMethodDeclaration(member)) {
    const name = `${owner}.${member.name.text}`;
    // The function that an author writes is no function of the SDK.
    return [{ ...described(4, name, member), fails: owner !== "Runs" }];
  }
  const entry = described(5, `${owner}.${member.name?.getText() ?? "[key]"}`, member);
  return [{ ...entry, signature: entry.signature.replace(/;$/, "").replace(/\s+/g, " ") }];
}

/** Whether a member only says that it does not exist. */
function isAbsent({ type }) {
  return type?.kind === ts.SyntaxKind.NeverKeyword || type?.kind === ts.SyntaxKind.UndefinedKeyword;
}

/** The members inside an alias that have no comment. Its signature shows the comments of the others. */
function silentMembers(alias) {
  const found = [];
  const visit = (node) => {
    if (ts.isConditionalTypeNode(node)) return;
    const isSilent = ts.isPropertySignature(node) && !isAbsent(node) && !textOf(node).text;
    if (isSilent) found.push(described(5, `${alias.name.text}.${node.name.getText()}`, node));
    ts.forEachChild(node, visit);
  };
  visit(alias);
  return found;
}

function described(depth, name, node) {
  return { depth, name, signature: ts.isSourceFile(node.parent) ? node.getText() : dedented(node.getText()), ...textOf(node) };
}

/** The lines of a member without the indentation of the member. */
function dedented(text) {
  const [, ...rest] = text.split("\n");
  const depths = rest.filter((line) => line.trim()).map((line) => line.search(/\S/));
  const depth = Math.min(...depths, 80);
  return [text.split("\n")[0], ...rest.map((line) => line.slice(depth))].join("\n");
}

/** The text of a comment, with its parameters as a list, and the errors. */
function textOf(node) {
  const comment = node.jsDoc?.at(-1);
  const said = (part) => (ts.getTextOfJSDocComment(part?.comment) ?? "").replace(/^- /, "").trim();
  const blocks = [said(comment)];
  const tags = comment?.tags ?? [];
  const parameters = tags.filter(ts.isJSDocParameterTag);
  if (parameters.length) blocks.push(parameters.map((tag) => `- \`${tag.name.text}\`: ${said(tag)}`).join("\n"));
  blocks.push(...tags.filter(ts.isJSDocReturnTag).map((tag) => `Returns: ${said(tag)}`));
  // TypeScript takes the first word after the tag for a type if it is in braces; here it is always prose.
  const errors = tags.filter(ts.isJSDocThrowsTag).map(said);
  return { text: blocks.filter(Boolean).join("\n\n"), errors: errors.join("\n\n") };
}
