// Single calls of a window, ready to be drawn.

import { Lane, Window } from "./data";

export interface Track {
  rank: number;
  thread: number;
  begin: number;
  place: Uint32Array;
  enter: Float64Array;
  exit: Float64Array;
  waits: { enter: number; until: number; kind: number; for: number }[];
}

export interface Scene {
  from: number;
  to: number;
  whole: boolean;
  tracks: Track[];
  /** Ranks of the tracks, ascending. */
  ranks: number[];
  messages: { from: number; to: number; sent: number; received: number; bytes: number }[];
  more: number;
}

function track(lane: Lane): Track {
  const n = lane.calls.length / 3;
  const [place, enter, exit] = [new Uint32Array(n), new Float64Array(n), new Float64Array(n)];
  let last = lane.begin;
  for (let i = 0; i < n; i++) {
    place[i] = lane.calls[3 * i];
    enter[i] = last + lane.calls[3 * i + 1];
    last = exit[i] = enter[i] + lane.calls[3 * i + 2];
  }
  const waits: Track["waits"] = [];
  let at = 0;
  for (let i = 0; i < lane.waits.length; i += 4) {
    at += lane.waits[i];
    waits.push({ enter: at, until: at + lane.waits[i + 1], kind: lane.waits[i + 2], for: lane.waits[i + 3] });
  }
  return { rank: lane.rank, thread: lane.thread, begin: lane.begin, place, enter, exit, waits };
}

export function scene(window: Window): Scene {
  let sent = 0;
  const messages = window.from.map((from, i) => {
    sent += window.sent[i];
    return { from, to: window.to[i], sent, received: sent + window.took[i], bytes: window.bytes[i] };
  });
  return {
    from: window.from_ns,
    to: window.to_ns,
    whole: window.whole,
    tracks: window.lanes.map(track),
    ranks: [...new Set(window.lanes.map((lane) => lane.rank))],
    messages,
    more: window.more,
  };
}

/** The first call that ends after a time. */
export function firstAfter(of: Track, time: number): number {
  let [low, high] = [0, of.exit.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of.exit[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
