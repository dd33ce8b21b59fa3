// Prints tool lists as JSON: one for each published MCP server, and one for each library that makes schemas. A schema is a text,
// exactly as its server sends it or its library makes it. Nothing here needs a network or an account.

import { libraries } from "./libraries";
import { type List, listed, servers } from "./servers";

const lists: List[] = [...libraries];
// One after the other, so that a slow machine starts no dozen programs at once.
for (const server of servers) lists.push(await listed(server));
process.stdout.write(JSON.stringify(lists));
