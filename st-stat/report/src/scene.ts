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
  /** How long the longest call takes. */
  longest: number;
  /** In the order of time. */
  waits: Waits;
  /** Where it is among the rows: from, to. A rank with several threads has a part of its row for each. */
  row: [number, number];
}

export interface Waits {
  enter: Float64Array;
  until: Float64Array;
  kind: Uint8Array;
  for: Uint32Array;
}

/** In the order in which they are sent; ends are numbers of tracks. */
export interface Messages {
  from: Uint32Array;
  to: Uint32Array;
  sent: Float64Array;
  received: Float64Array;
  /** −1 where that is not known. */
  bytes: Float64Array;
}

/** A collective operation in which some wait: until when, for whom, and from which row to which its ranks are. */
export interface Meeting {
  until: number;
  for: number;
  /** Number of the track of the one that comes last, if it is there. */
  last: number | null;
  /** Middles of the outermost rows of those that wait, and of the last. */
  low: number;
  high: number;
}

export interface Scene {
  from: number;
  to: number;
  whole: boolean;
  tracks: Track[];
  /** Ranks of the tracks, ascending, and in which row each is. */
  ranks: number[];
  rowOf: Map<number, number>;
  messages: Messages;
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
  const longest = lane.calls.reduce((most, ns, i) => (i % 3 === 2 && ns > most ? ns : most), 0);
  return { rank: lane.rank, thread: lane.thread, begin: lane.begin, place, enter, exit, longest, waits: waits(lane), row: [0, 1] };
}

function waits(lane: Lane): Waits {
  const n = lane.waits.length / 4;
  const to = { enter: new Float64Array(n), until: new Float64Array(n), kind: new Uint8Array(n), for: new Uint32Array(n) };
  let at = 0;
  for (let i = 0; i < n; i++) {
    to.enter[i] = at += lane.waits[4 * i];
    to.until[i] = at + lane.waits[4 * i + 1];
    to.kind[i] = lane.waits[4 * i + 2];
    to.for[i] = lane.waits[4 * i + 3];
  }
  return to;
}

export const middle = ({ row: [top, bottom] }: Track): number => (top + bottom) / 2;

/** Waits in one collective operation end at one time, for one rank. */
function meetings(tracks: Track[]): Meeting[] {
  const first = new Map<number, number>();
  tracks.forEach((track, i) => first.set(track.rank, first.get(track.rank) ?? i));
  const all = new Map<string, Meeting>();
  const join = (to: Meeting, row: number): void => {
    to.low = Math.min(to.low, row);
    to.high = Math.max(to.high, row);
  };
  for (const track of tracks) {
    const { waits } = track;
    for (let i = 0; i < waits.kind.length; i++) {
      if (KINDS[waits.kind[i]] !== "collective") continue;
      const [until, rank] = [waits.until[i], waits.for[i]];
      const key = `${until} ${rank}`;
      let known = all.get(key);
      if (!known) {
        known = { until, for: rank, last: first.get(rank) ?? null, low: Infinity, high: -Infinity };
        if (known.last !== null) join(known, middle(tracks[known.last]));
        all.set(key, known);
      }
      join(known, middle(track));
    }
  }
  return [...all.values()].sort((a, b) => a.until - b.until);
}

function messages(window: Window): Messages {
  const sent = new Float64Array(window.sent.length);
  let at = 0;
  window.sent.forEach((after, i) => (sent[i] = at += after));
  const received = sent.map((time, i) => time + window.took[i]);
  return { from: Uint32Array.from(window.from), to: Uint32Array.from(window.to), sent, received, bytes: Float64Array.from(window.bytes) };
}

export function scene(window: Window): Scene {
  const ranks = [...new Set(window.lanes.map((lane) => lane.rank))];
  const rowOf = new Map(ranks.map((rank, row) => [rank, row]));
  const threads = new Map<number, number>();
  for (const { rank } of window.lanes) threads.set(rank, (threads.get(rank) ?? 0) + 1);
  const tracks = window.lanes.map(track);
  for (const one of tracks) {
    const [row, n] = [rowOf.get(one.rank) ?? 0, threads.get(one.rank) ?? 1];
    one.row = [row + one.thread / n, row + (one.thread + 1) / n];
  }
  return {
    from: window.from_ns,
    to: window.to_ns,
    whole: window.whole,
    tracks,
    ranks,
    rowOf,
    messages: messages(window),
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

/** The first wait that ends after a time. */
export const waitAfter = (of: Track, time: number): number => first(of.waits.until.length, (i) => of.waits.until[i] > time);

/** Messages of which some are under way between two times: from which to before which. */
export function messagesIn({ messages: { sent }, longest }: Scene, from: number, to: number): [number, number] {
  return [first(sent.length, (i) => sent[i] > from - longest), first(sent.length, (i) => sent[i] >= to)];
}

/** Collective operations in which some wait until a time between two. */
export function meetingsIn(of: Scene, from: number, to: number): Meeting[] {
  const begin = first(of.meetings.length, (i) => of.meetings[i].until > from);
  return of.meetings.slice(begin, first(of.meetings.length, (i) => of.meetings[i].until >= to));
}
