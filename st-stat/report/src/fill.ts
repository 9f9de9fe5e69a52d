// Fills the rows of a timeline: with sums of the whole run, or with the single calls of a window.

import { edges } from "./cells";
import { Seen } from "./frame";
import { Painter } from "./paint";
import { Rows } from "./rows";
import { Scene, Track, firstAfter, waitAfter } from "./scene";
import { times } from "./sums";

/** Draws sums of the whole run. */
export function paintSums(painter: Painter, shown: Rows, { from, to, first, last }: Seen): void {
  const { sums, colours, levels } = shown;
  const { group, rows, columns, column_ns: column } = levels;
  const pixel = (to - from) / painter.width;
  // Whole columns, if none is narrower than a pixel; sums of each pixel, if they are.
  const wide = pixel <= column;
  const seen: [number, number] = [Math.max(0, Math.floor(from / column)), Math.min(columns, Math.ceil(to / column))];
  const at = wide ? null : times(levels, from, pixel, painter.width);
  const parts = wide ? edges(levels, seen, from, pixel, painter.width) : painter.each;
  const line = (row: number): number => Math.round(((row * group - first) / (last - first)) * painter.height);
  const end = Math.min(rows, Math.ceil(last / group));
  for (let row = Math.max(0, Math.floor(first / group)); row < end; ) {
    // Rows that share a line of pixels are added up.
    let next = row + 1;
    while (next < end && line(next) <= line(row)) next++;
    const under = next >= rows ? Math.round(((shown.count - first) / (last - first)) * painter.height) : line(next);
    const [top, bottom] = [line(row), Math.max(under, line(row) + 1)];
    if (wide && next === row + 1 && !painter.stacks(top, bottom)) {
      const [made, above] = colours.row(row, painter.colours);
      painter.line(top, bottom, parts, (i) => made[seen[0] + i], (i) => above[seen[0] + i]);
    } else {
      painter.clear();
      for (let of = row; of < next; of++) {
        const { cells } = painter;
        if (!at) sums.columns(of, seen, cells);
        else {
          sums.add(of, at, cells.sums);
          sums.longest(of, from, pixel, cells.most, cells.busiest, painter.width);
        }
      }
      painter.row(top, bottom, parts);
    }
    row = next;
  }
}

/** Draws single calls, of a run that is so long. */
export function paintCalls(painter: Painter, of: Scene, seen: Seen, run_ns: number): void {
  const { first, last } = seen;
  const line = (row: number): number => Math.round(((row - first) / (last - first)) * painter.height);
  for (const track of of.tracks) {
    const [top, bottom] = track.row;
    if (bottom <= first || top >= last) continue;
    painter.clear();
    addCalls(painter, of, track, seen, run_ns);
    addWaits(painter, track, seen);
    painter.row(line(top), Math.max(line(bottom), line(top) + 1), painter.each);
  }
}

/** Adds calls of a track, and what is between them, to the row at hand. */
function addCalls(painter: Painter, of: Scene, track: Track, { from, to }: Seen, run_ns: number): void {
  const scale = painter.width / (to - from);
  const [computation, mpi] = painter.cells.sums;
  const { enter, exit } = track;
  let before = (Math.max(track.begin, from) - from) * scale;
  let i = firstAfter(track, from);
  for (; i < enter.length && enter[i] < to; i++) {
    const begin = (enter[i] - from) * scale;
    const end = (exit[i] - from) * scale;
    add(computation, before, begin, painter.width);
    add(mpi, begin, end, painter.width);
    before = end;
  }
  const more = firstAfter(track, to) < enter.length;
  if (more || (of.to < run_ns && to >= of.to)) add(computation, before, (Math.min(to, of.to) - from) * scale, painter.width);
}

/** Adds waits of a track to the row at hand. They are in calls: what they take is not MPI's own. */
function addWaits(painter: Painter, track: Track, { from, to }: Seen): void {
  const scale = painter.width / (to - from);
  const { sums } = painter.cells;
  const { enter, until, kind } = track.waits;
  const begin = waitAfter(track, from);
  let i = begin;
  for (; i < enter.length && enter[i] < to; i++) add(sums[2 + kind[i]], (enter[i] - from) * scale, (until[i] - from) * scale, painter.width);
  if (i === begin) return;
  const own = sums[1];
  for (let x = 0; x < painter.width; x++) {
    let waits = 0;
    for (let part = 2; part < sums.length; part++) waits += sums[part][x];
    if (waits > 0) own[x] = Math.max(0, own[x] - waits);
  }
}

/** Adds what is between two places to the pixels there, of so many. Called for each call in each frame: it makes no arrays. */
function add(sums: Float64Array, from: number, to: number, width: number): void {
  const begin = Math.max(0, from);
  const end = Math.min(width, to);
  if (end <= begin) return;
  let x = Math.floor(begin);
  if (end <= x + 1) {
    sums[x] += end - begin;
    return;
  }
  sums[x] += x + 1 - begin;
  for (x++; x + 1 <= end; x++) sums[x] += 1;
  if (x < width) sums[x] += end - x;
}
