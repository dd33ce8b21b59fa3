// Untrusted text stays text everywhere: no markup, no script, no request, no forged line.
import type { Page } from "@playwright/test";
import { fixture } from "../src/components";
import { approvals, button, expect, questions, stay, test } from "../src/test";

const IMAGE = `<img src=x onerror="window.pwned='img'">`;
const SCRIPT = "<script>window.pwned='script'</script>";
const LINK = "[pay](javascript:pwned=1)";
const BREAK_OUT = `"></pre></blockquote></toolgate-approval>${IMAGE}`;
/** Reversed, hidden and forged text. */
const TRICKS = "evil\u202egpj.exe\u200b\u2066\u001b[31m";
/** Lookalike letters: foreign letters in a word, a whole foreign word, mathematical and full-width letters. */
const LOOKS = "p\u0430ypal.com \u0441\u043e\u0441\u043e \u{1d429}ay \uff50ay";
/** The same text escaped, as text and as JSON. */
const SHOWN_LOOKS = "p\\u{430}ypal.com \\u{441}\\u{43e}\\u{441}\\u{43e} \\u{1d429}ay \\u{ff50}ay";
const JSON_LOOKS = "p\\u0430ypal.com \\u0441\\u043e\\u0441\\u043e \\ud835\\udc29ay \\uff50ay";
const SHOWN_TRICKS = "evil\\u{202e}gpj.exe\\u{200b}\\u{2066}\\u{1b}[31m";
const ALL = `${IMAGE} ${SCRIPT} ${LINK} ${BREAK_OUT} ${TRICKS} ${LOOKS}`;

const RESPONSE = {
  type: "object",
  title: ALL,
  description: `**bold** ${ALL}`,
  properties: {
    answer: { type: "string", title: `Answer ${IMAGE}`, description: ALL, default: IMAGE },
    choice: { type: "string", title: "Choice", enum: [IMAGE, TRICKS] },
  },
};

const TOOLS = [
  {
    name: "gated",
    description: ALL,
    approval: "requires-approval",
    parameters: { type: "object", properties: { note: { type: "string" } } },
    options: { title: `${IMAGE} ${LOOKS}`, prompt: `Do this? ${IMAGE} {note} ${LINK}`, editable: "all" },
  },
  {
    name: "asks",
    description: ALL,
    executor: "human",
    options: { title: `${IMAGE} ${LOOKS}`, prompt: ALL, response: RESPONSE },
  },
  { name: "plain", description: ALL },
] as const;

/** An operator may copy a reason from an untrusted source. */
const TABLES = `
[[policy]]
name = "copied"
tools = "gated"
rule = "ask"
reason = "because ${TRICKS.replaceAll(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)} ${LOOKS}"
`;

/** The page and its shadow trees contain no injected markup, and no injected script ran. */
async function expectHarmless(page: Page, where: string): Promise<void> {
  const found = await page.evaluate(() => {
    const bad: string[] = [];
    const look = (root: Document | ShadowRoot) => {
      for (const element of root.querySelectorAll("*")) {
        const source = element.getAttribute("src") ?? "";
        const isOurs = source.startsWith("/assets/") || source.startsWith("data:image/svg+xml");
        if (element.matches("iframe, object, embed, base, style:not([nonce])")) bad.push(element.outerHTML);
        if (element.matches("img, script") && !isOurs) bad.push(element.outerHTML);
        if (
          element.matches("a[href]") &&
          !/^https?:$/.test(new URL((element as HTMLAnchorElement).href).protocol)
        )
          bad.push(element.outerHTML);
        if ([...element.attributes].some(({ name }) => name.startsWith("on"))) bad.push(element.outerHTML);
        if (element.shadowRoot !== null) look(element.shadowRoot);
      }
    };
    look(document);
    const texts: string[] = [];
    const read = (node: Node) => {
      if (node.nodeType === Node.TEXT_NODE && node.parentElement?.localName !== "script")
        texts.push(node.nodeValue ?? "");
      if (node instanceof HTMLInputElement || node instanceof HTMLTextAreaElement) return;
      if (node instanceof Element && node.shadowRoot !== null) read(node.shadowRoot);
      node.childNodes.forEach(read);
    };
    read(document.body);
    const deceives =
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them.
      /[\u202a-\u202e\u2066-\u2069\u200b\u001b\u0400-\u04ff\uff00-\uffef\u{1d400}-\u{1d7ff}]/u;
    const tricks = texts.filter((text) => deceives.test(text));
    return { bad, tricks, pwned: (window as { pwned?: unknown }).pwned ?? null };
  });
  expect(found, where).toEqual({ bad: [], tricks: [], pwned: null });
}

test("hostile text is shown and does nothing", async ({ start, enter }) => {
  const rejected = [{ name: `<img src=x>`, description: "" }];
  const host = await start({
    components: { words: fixture([...TOOLS]), wrong: fixture(rejected) },
    tables: TABLES,
    isRefused: true,
  });
  const agent = host.token("agent", ["caller"]);
  const root = host.token("root", ["admin", "approver"]);
  const args = { note: ALL, [BREAK_OUT]: [TRICKS, { __proto__x: SCRIPT }], constructor: IMAGE };
  const page = await enter(host, root);
  await agent.call("hostile", "plain", args);
  const turn = await agent.call("hostile", "gated", args, { ticket: ALL, [IMAGE]: TRICKS });
  const asked = await agent.call("hostile", "asks", args);

  const card = approvals(page);
  await expect(card).toContainText(`Do this? ${IMAGE}`);
  await expect(card.locator("pre").first()).toContainText("window.pwned='script'");
  await expect(card.locator("pre").first()).toContainText("\\u202e");
  // Each text separately: title, prompt, reason and arguments.
  await expect(card.getByRole("heading")).toContainText(`${IMAGE} ${SHOWN_LOOKS}`);
  await expect(card.getByRole("figure")).toContainText(`${SHOWN_TRICKS} ${SHOWN_LOOKS}`);
  await expect(card.locator("[part=reason]")).toContainText(`because ${SHOWN_TRICKS} ${SHOWN_LOOKS}`);
  await expect(card.locator("[part=arguments] pre")).toContainText(JSON_LOOKS);
  await expect(questions(page).getByRole("heading")).toContainText(SHOWN_LOOKS);
  await expect(questions(page).getByRole("figure")).toContainText(`${SHOWN_TRICKS} ${SHOWN_LOOKS}`);
  await expect(questions(page).getByLabel(/^Answer/)).toBeVisible();
  await expect(questions(page)).toContainText(`**bold** ${IMAGE}`);
  await expectHarmless(page, "inbox");

  await button(card, "Edit arguments").click();
  await page.getByLabel("Arguments, as JSON").fill(JSON.stringify({ note: `${IMAGE}${SCRIPT}` }));
  await expect(card.getByLabel("Changes")).toContainText(IMAGE.replaceAll('"', '\\"'));
  await expectHarmless(page, "editing");
  await stay(page);
  await button(card, "Stop editing").click();
  await card.getByLabel("Comment, kept with the answer").fill(ALL.replaceAll(/[^ -~]/g, ""));
  await button(card, "Deny").click();
  await expect(card).toHaveAttribute("closed");
  expect((await agent.ended(turn)).outcome).toBe("denied");

  for (const path of [
    `/suspensions/${turn.calls[0]?.suspension}`,
    `/suspensions/${asked.calls[0]?.suspension}`,
    "/conversations/hostile",
    "/conversations",
    "/plugins",
    "/audit",
    `/conversations/${encodeURIComponent(IMAGE)}`,
    `/?tool=${encodeURIComponent(IMAGE)}`,
    `/login?to=${encodeURIComponent("javascript:alert(1)")}`,
    `/login?to=${encodeURIComponent("//evil.example/")}`,
  ]) {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await expect(page.locator(".skeleton")).toHaveCount(0);
    if (path === "/plugins")
      await expect(page.locator("body")).toContainText(`${SHOWN_TRICKS} ${SHOWN_LOOKS}`);
    await expectHarmless(page, path);
    expect(new URL(page.url()).origin).toBe(host.url);
  }
});

test("the browser's policy refuses injected content", async ({ start, enter, visit }) => {
  const host = await start({ plugins: ["lab"] });
  const root = host.token("root", ["admin"]);
  const page = await enter(host, root, {
    expected: /Content Security Policy|requires 'Trusted/,
  });
  // Simulates bugs: text as markup, an inline script, a request to another site.
  const refused = await page.evaluate(async () => {
    const said: string[] = [];
    document.addEventListener("securitypolicyviolation", (event) => said.push(event.effectiveDirective));
    try {
      document.body.innerHTML = "<b>markup</b>";
    } catch {
      said.push("thrown");
    }
    const script = document.createElement("script");
    try {
      script.textContent = "window.pwned = 1";
    } catch {
      said.push("thrown");
    }
    document.body.append(script);
    await fetch("https://evil.example/").catch(() => said.push("not asked"));
    // The violation events arrive in a later task.
    while (!said.includes("connect-src")) await new Promise((resolve) => setTimeout(resolve));
    return {
      said: [...new Set(said)],
      pwned: (window as { pwned?: unknown }).pwned ?? null,
      body: document.body.innerHTML !== "",
    };
  });
  expect(refused.pwned).toBeNull();
  expect(refused.said).toEqual(
    expect.arrayContaining(["thrown", "not asked", "require-trusted-types-for", "connect-src"]),
  );
  // Other sites cannot frame the console.
  const frame = await visit({ expected: /frame-ancestors/ });
  await frame.setContent(`<iframe src="${host.url}/"></iframe>`);
  await expect.poll(() => frame.frames().map((one) => one.url())).toContain("chrome-error://chromewebdata/");
  // Scripts cannot read the cookie.
  expect(await page.evaluate(() => document.cookie)).toBe("");
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ name: "toolgate_session", httpOnly: true, sameSite: "Strict", path: "/" });
});
