// Plugins: the live ones, the rejected ones with the reasons, and the permissions of each.

import { useEffect } from "react";
import { useHostEvents } from "../host/follow";
import { useLoad } from "../host/load";
import type { Plugin, Tool } from "../host/wire";
import { Badge, Digest, Facts, Strange } from "../parts/bits";
import { Empty, Page, Shown } from "../parts/page";
import { useSession } from "../session";
import { shown, shownLines } from "../text/shown";
import { counted } from "../text/words";

export function Plugins() {
  const { host } = useSession();
  const loaded = useLoad("plugins", async (signal) => {
    const [{ plugins }, { tools }] = await Promise.all([
      host.get<{ plugins: Plugin[] }>("/v1/plugins", { signal }),
      host.get<{ tools: Tool[] }>("/v1/tools?partial=true", { signal }),
    ]);
    return { plugins, tools: new Map(tools.map((tool) => [tool.name, tool])) };
  });
  const { reload } = loaded;
  const changes = useHostEvents();
  useEffect(() => {
    if (changes > 0) reload();
  }, [changes, reload]);
  return (
    <Page
      title="Plugins"
      lead="Live, loading and rejected plugins, and the permissions of each. Grants are set in the operator’s configuration."
    >
      <Shown loaded={loaded}>
        {({ plugins, tools }) =>
          plugins.length === 0 ? (
            <Empty title="No plugin is loaded">
              Put a component into the plugins folder, or upload it with <code>PUT /v1/plugins/NAME</code>.
            </Empty>
          ) : (
            <ul className="cards">
              {/* Rejected plugins come first, because they need attention. */}
              {[...plugins.filter(isRefused), ...plugins.filter((plugin) => !isRefused(plugin))].map(
                (plugin) => (
                  <PluginCard key={plugin.name} plugin={plugin} tools={tools} />
                ),
              )}
            </ul>
          )
        }
      </Shown>
    </Page>
  );
}

const isRefused = ({ state }: Plugin) => state === "rejected";

const TONES = { live: "good", loading: "waiting", rejected: "bad" } as const;

function PluginCard({ plugin, tools }: { plugin: Plugin; tools: Map<string, Tool> }) {
  return (
    <li className="card">
      <header className="card-head">
        <h2>
          <Strange>{plugin.name}</Strange>
        </h2>
        <Badge tone={TONES[plugin.state]}>{plugin.state}</Badge>
        {plugin.sandboxed === false && <Badge tone="waiting">outside the sandbox</Badge>}
        {plugin.needs_review && <Badge tone="waiting">needs review</Badge>}
      </header>
      {plugin.origin && (
        <p className="row-end">
          MCP server at <Strange>{plugin.origin}</Strange>
        </p>
      )}
      {plugin.digest && <Digest of={plugin.digest} label="digest of the component" />}
      {plugin.built_against && (
        <p className="row-end">
          built against <code>{plugin.built_against}</code>
        </p>
      )}
      {plugin.findings.length > 0 && <Findings findings={plugin.findings} />}
      {plugin.notes.length > 0 && <Notes notes={plugin.notes} />}
      {plugin.tools.length > 0 && (
        <section aria-label={`Tools of ${shown(plugin.name)}`}>
          <h3>{counted(plugin.tools.length, "tool")}</h3>
          <ul className="tools">
            {plugin.tools.map((name) => (
              <ToolRow key={name} name={name} tool={tools.get(name)} />
            ))}
          </ul>
        </section>
      )}
      <Access plugin={plugin} />
    </li>
  );
}

function Findings({ findings }: { findings: Plugin["findings"] }) {
  return (
    <section className="findings" aria-label="Findings">
      <h3>{counted(findings.length, "finding")}</h3>
      <ul>
        {findings.map((finding) => (
          <li key={`${finding.tool} ${finding.rule} ${finding.message}`}>
            <code>{finding.rule}</code>
            {finding.tool && (
              <>
                {" "}
                of <Strange>{finding.tool}</Strange>
              </>
            )}
            <p>{shownLines(finding.message)}</p>
            <p className="remedy">{shownLines(finding.remedy)}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Notes({ notes }: { notes: Plugin["notes"] }) {
  return (
    <section aria-label="Notes">
      <h3>{counted(notes.length, "note")}</h3>
      <ul>
        {notes.map((note) => (
          <li key={`${note.tool} ${note.message}`}>
            <Strange>{note.tool}</Strange>
            <p>{shownLines(note.message)}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}

function ToolRow({ name, tool }: { name: string; tool: Tool | undefined }) {
  return (
    <li>
      <div className="tool-head">
        <code>
          <Strange>{name}</Strange>
        </code>
        {tool && tool.executor !== "server" && <Badge>{tool.executor}</Badge>}
        {tool?.rule === "deny" ? (
          <Badge tone="bad">denied</Badge>
        ) : (
          tool?.approval === "requires-approval" && <Badge tone="waiting">needs approval</Badge>
        )}
        {tool?.streaming && <Badge>progress</Badge>}
      </div>
      {tool && (
        <p className="tool-words" dir="auto">
          {shownLines(tool.description)}
        </p>
      )}
    </li>
  );
}

const REQUEST_TONES = {
  granted: "good",
  "in part": "waiting",
  missing: "waiting",
  impossible: "bad",
} as const;

function Access({ plugin }: { plugin: Plugin }) {
  const { access } = plugin;
  if (!access) return null;
  const list = (lines: string[]) => (lines.length === 0 ? "nothing" : <Lines lines={lines} />);
  return (
    <section aria-label={`Access of ${shown(plugin.name)}`}>
      <h3>May do</h3>
      <Facts
        rows={[
          ["Effective", list(access.effective)],
          ["Granted", access.granted.length > 0 && list(access.granted)],
          ["Granted to", access.granted_to.length > 0 && list(access.granted_to)],
          [
            "Requested",
            access.requested != null && access.requested.length > 0 && (
              <ul className="lines">
                {access.requested.map(({ what, why, state, refusal }) => (
                  <li key={what}>
                    <Badge tone={REQUEST_TONES[state]}>{state}</Badge> <Strange>{what}</Strange>
                    {refusal && <p>{refusal}</p>}
                    {why && (
                      <q className="comment" dir="auto">
                        {shownLines(why)}
                      </q>
                    )}
                  </li>
                ))}
              </ul>
            ),
          ],
        ]}
      />
    </section>
  );
}

function Lines({ lines }: { lines: string[] }) {
  return (
    <ul className="lines">
      {lines.map((line) => (
        <li key={line}>
          <Strange>{line}</Strange>
        </li>
      ))}
    </ul>
  );
}
