// The entries of TypeScript declarations, for the readers of `cargo xtask sdk-docs`.

import ts from "typescript";

/** The declarations in a text. */
export function declarations(file, text) {
  return ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
}

/** Puts the overloads of a function into one entry, with the text of the first one. */
export function merged(found) {
  const kept = [];
  for (const one of found) {
    const first = kept.find(({ depth, name }) => depth === one.depth && depth === 3 && name === one.name);
    if (first) first.signature += `\n${one.signature}`;
    else kept.push(one);
  }
  return kept;
}

/** The entries of a statement. `fails` says whether a method needs a text about its errors. */
export function ofStatement(node, fails) {
  if (ts.isFunctionDeclaration(node)) return [{ ...described(3, node.name.text, node), fails: fails(undefined, node) }];
  if (ts.isTypeAliasDeclaration(node)) return [described(3, node.name.text, node), ...silentMembers(node)];
  if (ts.isVariableStatement(node) && isExported(node) && node.declarationList.declarations.length === 1) {
    return [described(3, node.declarationList.declarations[0].name.text, node)];
  }
  if (ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node)) {
    const head = node.getText().slice(0, node.members.pos - node.getStart() - 1);
    const entry = { ...described(3, node.name.text, node), signature: head.trim() };
    return [entry, ...node.members.flatMap((member) => ofMember(node, member, fails))];
  }
  if (!isExported(node)) return [];
  // A public name must not be missing on the page because this reader does not know its kind.
  const line = node.getText().split("\n")[0];
  throw new Error(`\`cargo xtask sdk-docs\` does not know this kind of public name: ${line}`);
}

function isExported(node) {
  return ts.isExportDeclaration(node) || ts.isExportAssignment(node) || has(node, ts.SyntaxKind.ExportKeyword);
}

export function has(node, keyword) {
  return node.modifiers?.some(({ kind }) => kind === keyword) === true;
}

function ofMember(owner, member, fails) {
  const isHidden = [ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.ProtectedKeyword].some((kind) => has(member, kind));
  if (isHidden || isAbsent(member)) return [];
  const inner = member.name && (ts.isComputedPropertyName(member.name) || ts.isPrivateIdentifier(member.name));
  if (inner) return [];
  const prefix = owner.name.text;
  if (ts.isMethodSignature(member) || ts.isMethodDeclaration(member)) {
    const name = `${prefix}.${member.name.text}`;
    return [{ ...described(4, name, member), fails: fails(prefix, member) }];
  }
  if (ts.isConstructorDeclaration(member)) {
    const says = member.parameters.length > 0 && !has(owner, ts.SyntaxKind.AbstractKeyword);
    return says ? [described(4, `new ${prefix}`, member)] : [];
  }
  if (ts.isSetAccessor(member) && !isAlone(owner, member)) return [];
  const entry = described(5, `${prefix}.${member.name?.getText() ?? "[key]"}`, member);
  return [{ ...entry, signature: signatureOf(owner, member) ?? entry.signature.replace(/;$/, "").replace(/\s+/g, " ") }];
}

/** The signature of an accessor, written as that of a property. */
function signatureOf(owner, member) {
  if (!ts.isAccessor(member)) return undefined;
  const type = ts.isGetAccessor(member) ? member.type : member.parameters[0].type;
  const readonly = ts.isGetAccessor(member) && isAlone(owner, member) ? "readonly " : "";
  return `${readonly}${member.name.getText()}: ${type.getText().replace(/\s+/g, " ")}`;
}

/** Whether a property has only one accessor. */
function isAlone(owner, accessor) {
  const name = accessor.name.getText();
  return owner.members.filter((member) => ts.isAccessor(member) && member.name.getText() === name).length === 1;
}

/** Whether a member only says that it does not exist. */
function isAbsent({ type }) {
  return type?.kind === ts.SyntaxKind.NeverKeyword || type?.kind === ts.SyntaxKind.UndefinedKeyword;
}

/** Whether a member is one of some words, which tell the variants of an alias apart. */
function isWord({ type }) {
  const isLiteral = (one) => one !== undefined && ts.isLiteralTypeNode(one) && ts.isStringLiteral(one.literal);
  return isLiteral(type) || (type !== undefined && ts.isUnionTypeNode(type) && type.types.every(isLiteral));
}

/** The members inside an alias that have no comment. Its signature shows the comments of the others. */
function silentMembers(alias) {
  const found = [];
  const visit = (node) => {
    if (ts.isConditionalTypeNode(node)) return;
    const isSilent = ts.isPropertySignature(node) && !isAbsent(node) && !isWord(node) && !textOf(node).text;
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
export function textOf(node) {
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
