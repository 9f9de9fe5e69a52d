// Single calls of a window, ready to be drawn.

import { Lane, Window } from "./data";
import { KINDS } from "./sums";

export interface Track {
  rank: number;
  thread: number;
  begin: number;
  place: Uint32Array;
  enter: Float64Array;
  exit: Float64Array;
  /** In the order of time. */
  waits: Wait[];
  /** Where it is among the rows: from, to. A rank with several threads has a part of its row for each. */
  row: [number, number];
}

export interface Wait {
  enter: number;
  until: number;
  kind: number;
  for: number;
}

export interface Message {
  from: number;
  to: number;
  sent: number;
  received: number;
  bytes: number;
}

/** A collective operation in which some wait: until when, for whom, and from which row to which its ranks are. */
export interface Meeting {
  until: number;
  for: number;
  /** Numbers of tracks: of the one that comes last, if it is there, and of those that wait. */
  last: number | null;
  tracks: number[];
}

export interface Scene {
  from: number;
  to: number;
  whole: boolean;
  tracks: Track[];
  /** Ranks of the tracks, ascending. */
  ranks: number[];
  /** In the order in which they are sent. */
  messages: Message[];
  /** How long the longest takes. */
  longest: number;
  more: number;
  /** In the order of time. */
  meetings: Meeting[];
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
  return { rank: lane.rank, thread: lane.thread, begin: lane.begin, place, enter, exit, waits, row: [0, 1] };
}

/** Waits in one collective operation end at one time, for one rank. */
function meetings(tracks: Track[]): Meeting[] {
  const first = new Map<number, number>();
  tracks.forEach((track, i) => first.set(track.rank, first.get(track.rank) ?? i));
  const all = new Map<string, Meeting>();
  tracks.forEach((track, i) => {
    for (const wait of track.waits) {
      if (KINDS[wait.kind] !== "collective") continue;
      const key = `${wait.until} ${wait.for}`;
      const known = all.get(key) ?? { until: wait.until, for: wait.for, last: first.get(wait.for) ?? null, tracks: [] };
      known.tracks.push(i);
      all.set(key, known);
    }
  });
  return [...all.values()].sort((a, b) => a.until - b.until);
}

export function scene(window: Window): Scene {
  let sent = 0;
  const messages = window.from.map((from, i) => {
    sent += window.sent[i];
    return { from, to: window.to[i], sent, received: sent + window.took[i], bytes: window.bytes[i] };
  });
  const ranks = [...new Set(window.lanes.map((lane) => lane.rank))];
  const rows = new Map(ranks.map((rank, row) => [rank, row]));
  const threads = new Map<number, number>();
  for (const { rank } of window.lanes) threads.set(rank, (threads.get(rank) ?? 0) + 1);
  const tracks = window.lanes.map(track);
  for (const one of tracks) {
    const [row, n] = [rows.get(one.rank) ?? 0, threads.get(one.rank) ?? 1];
    one.row = [row + one.thread / n, row + (one.thread + 1) / n];
  }
  return {
    from: window.from_ns,
    to: window.to_ns,
    whole: window.whole,
    tracks,
    ranks,
    messages,
    longest: window.took.reduce((a, b) => Math.max(a, b), 0),
    more: window.more,
    meetings: meetings(tracks),
  };
}

/** The first of so many for which something holds, if it holds for all after it. */
function first(n: number, holds: (i: number) => boolean): number {
  let [low, high] = [0, n];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first call that ends after a time. */
export const firstAfter = (of: Track, time: number): number => first(of.exit.length, (i) => of.exit[i] > time);

/** Waits that are between two times, at least in part. */
export function waitsIn(of: Track, from: number, to: number): Wait[] {
  const begin = first(of.waits.length, (i) => of.waits[i].until > from);
  return of.waits.slice(begin, first(of.waits.length, (i) => of.waits[i].enter >= to));
}

/** Messages that are under way between two times. */
export function messagesIn(of: Scene, from: number, to: number): Message[] {
  const begin = first(of.messages.length, (i) => of.messages[i].sent > from - of.longest);
  const end = first(of.messages.length, (i) => of.messages[i].sent >= to);
  return of.messages.slice(begin, end).filter((m) => m.received > from);
}

/** Collective operations in which some wait until a time between two. */
export function meetingsIn(of: Scene, from: number, to: number): Meeting[] {
  const begin = first(of.meetings.length, (i) => of.meetings[i].until > from);
  return of.meetings.slice(begin, first(of.meetings.length, (i) => of.meetings[i].until >= to));
}
