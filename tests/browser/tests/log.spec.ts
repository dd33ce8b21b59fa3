// The log of a call in the timeline.
import { expect, test } from "../src/test";

test("an opened log of a call is read, also after a restart", async ({ start, enter }) => {
  const host = await start({ plugins: ["lab"] });
  const agent = host.token("agent", ["caller"]);
  const page = await enter(host, host.token("root", ["admin"]));
  await agent.ended(await agent.call("log", "stdout", { bytes: 300 }));
  for (const when of ["while the host runs", "after a restart"]) {
    await page.goto(`${host.url}/conversations/log`);
    await page.getByRole("button", { name: "Log", exact: true }).click();
    const lines = page.getByRole("region", { name: "Log of run 1" }).getByRole("listitem");
    await expect(lines, when).toHaveCount(3);
    await expect(lines.nth(2), when).toHaveText(/^3[a-z]+x{99}$/);
    if (when === "while the host runs") {
      await host.kill();
      await host.start();
    }
  }
});
