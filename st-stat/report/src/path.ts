// The critical path: on which rank it is when.

import { Timeline } from "./data";

export interface Path {
  rank: Uint32Array;
  /** When it leaves the rank. */
  until: Float64Array;
}

export function path(data: Timeline): Path {
  const n = data.path.length / 2;
  const of = { rank: new Uint32Array(n), until: new Float64Array(n) };
  let until = 0;
  for (let i = 0; i < n; i++) {
    of.rank[i] = data.path[2 * i];
    of.until[i] = until += data.path[2 * i + 1];
  }
  return of;
}

/** Which of its stays is at a time. */
export function stayAt(of: Path, time: number): number {
  let [low, high] = [0, of.until.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of.until[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** It as a line: along its ranks, and from one to the next. `row`: the middle of a rank's row, if it has one. Of stays that are in
 * one pixel the outermost ranks are joined, so that there are no more lines than pixels. Returns how many stays are seen. */
export function pathLine(
  line: Path2D,
  of: Path,
  [from, to]: [number, number],
  across: (time: number) => number,
  row: (rank: number) => number | undefined,
): number {
  const first = stayAt(of, from);
  let [x, low, high, y] = [NaN, NaN, NaN, NaN];
  const flush = (): void => {
    if (!(high > low)) return;
    line.moveTo(x, low);
    line.lineTo(x, high);
  };
  let i = first;
  for (; i < of.rank.length; i++) {
    const begin = i > 0 ? of.until[i - 1] : 0;
    if (begin >= to) break;
    const at = row(of.rank[i]);
    if (at === undefined) {
      y = NaN;
      continue;
    }
    const [a, b] = [Math.round(across(Math.max(begin, from))), Math.round(across(Math.min(of.until[i], to)))];
    if (a !== x) {
      flush();
      [x, low, high] = [a, at, at];
    }
    // From where it was before.
    [low, high] = Number.isNaN(y) ? [Math.min(low, at), Math.max(high, at)] : [Math.min(low, at, y), Math.max(high, at, y)];
    if (b > a) {
      flush();
      line.moveTo(a, at);
      line.lineTo(b, at);
      [x, low, high] = [b, at, at];
    }
    y = at;
  }
  flush();
  return i - first;
}
