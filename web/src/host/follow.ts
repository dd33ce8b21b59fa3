// Event streams for pages.

import type { FeedEvent, StreamStatus } from "@toolgate/web";
import { useEffect, useState } from "react";
import { useSession } from "../session";
import { parseExact } from "../text/json";
import { type Timeline, withEvent } from "../timeline/timeline";

export interface Followed {
  timeline: Timeline;
  state: "opening" | "live" | "waiting";
  error?: Error;
  again: () => void;
}

/** A conversation from its first event on. */
export function useTimeline(conversation: string): Followed {
  const { host } = useSession();
  const [timeline, setTimeline] = useState<Timeline>([]);
  const [state, setState] = useState<Followed["state"]>("opening");
  const [error, setError] = useState<Error>();
  const [attempt, setAttempt] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `attempt` starts the stream again.
  useEffect(() => {
    const abort = new AbortController();
    setTimeline([]);
    setError(undefined);
    const stream = host.toolgate.events(conversation, {
      signal: abort.signal,
      parse: parseExact,
      onStatus: (status) => setState(named(status)),
    });
    const gather = batched((events) => setTimeline((before) => events.reduce(withEvent, before)));
    follow(stream, gather.add).catch((failure: Error) => abort.signal.aborted || setError(failure));
    return () => {
      gather.stop();
      abort.abort();
    };
  }, [host, conversation, attempt]);
  return { timeline, state, ...(error ? { error } : {}), again: () => setAttempt((before) => before + 1) };
}

/** Counts plugin events, so that pages can reload. */
export function useHostEvents(): number {
  const { host } = useSession();
  const [count, setCount] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const more = () => setCount((before) => before + 1);
    // The stream also has the ends of turns.
    const ofPlugin = (event: FeedEvent) => {
      if (event.event.startsWith("plugin.")) more();
    };
    let opened = 0;
    const onStatus = ({ state }: StreamStatus) => {
      if (state !== "open") return;
      // The stream does not repeat events that it missed.
      opened += 1;
      if (opened > 1) more();
    };
    const stream = host.toolgate.hostEvents({ signal: abort.signal, after: "now", onStatus });
    // The plugins page also works without live updates.
    follow(stream, ofPlugin).catch(() => {});
    return () => abort.abort();
  }, [host]);
  return count;
}

async function follow(stream: AsyncIterable<FeedEvent>, each: (event: FeedEvent) => void): Promise<void> {
  for await (const event of stream) each(event);
}

function named(status: StreamStatus): Followed["state"] {
  return status.state === "open" ? "live" : status.state === "waiting" ? "waiting" : "opening";
}

/** Hands over events in one batch per frame, because the history of a conversation arrives very fast. */
function batched(take: (events: FeedEvent[]) => void) {
  let waiting: FeedEvent[] = [];
  let frame = 0;
  const hand = () => {
    const events = waiting;
    [waiting, frame] = [[], 0];
    take(events);
  };
  return {
    add: (event: FeedEvent) => {
      waiting.push(event);
      if (frame === 0) frame = requestAnimationFrame(hand);
    },
    stop: () => cancelAnimationFrame(frame),
  };
}
