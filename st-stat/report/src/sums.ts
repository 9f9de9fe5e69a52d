// Sums of the timeline at any zoom: running sums over time, from which the sum between any two times follows, so that nothing is lost
// however wide a pixel is.

import { Levels } from "./data";
import type { Cells } from "./paint";

/** What a cell consists of. */
export const PARTS = ["computation", "MPI", "late sender", "late receiver", "collective", "one-sided"] as const;
export const KINDS = PARTS.slice(2);

/** The most that one rank of a row waits, or computes, in columns of some width. */
interface Most {
  columns: number;
  ns: number;
  values: Float64Array;
}

export class Sums {
  /** By part and row, up to the beginning of each column and the end of the last; MPI is without waits. */
  private readonly running: (Float64Array | null)[];
  /** The finest first; each has half as many columns as the one before. Nothing, if rows are single ranks. */
  private readonly most: Most[];
  private readonly busiest: Most[];

  constructor(private readonly of: Levels) {
    const waits = of.waits.map((kind) => (kind.length > 0 ? kind : null));
    const own = of.mpi.map((ns, i) => Math.max(0, waits.reduce((left, kind) => left - (kind?.[i] ?? 0), ns)));
    this.running = [of.computation, own, ...waits].map((part) => part && this.added(part));
    this.most = this.levels(Float64Array.from(of.most));
    // In percent.
    this.busiest = this.levels(Float64Array.from(of.busiest, (part) => (part * of.column_ns) / 100));
  }

  private levels(values: Float64Array): Most[] {
    if (values.length === 0) return [];
    let last: Most = { columns: this.of.columns, ns: this.of.column_ns, values };
    const all = [last];
    while (last.columns > 32) all.push((last = this.halved(last)));
    return all;
  }

  private added(part: number[]): Float64Array {
    const { rows, columns } = this.of;
    const to = new Float64Array(rows * (columns + 1));
    for (let row = 0; row < rows; row++) {
      const base = row * (columns + 1);
      for (let i = 0; i < columns; i++) to[base + i + 1] = to[base + i] + part[row * columns + i];
    }
    return to;
  }

  private halved({ columns, ns, values }: Most): Most {
    const half = Math.ceil(columns / 2);
    const to = new Float64Array(this.of.rows * half);
    // Another rank may wait, or compute, most in each half: no rank does longer than both together.
    values.forEach((n, i) => (to[Math.floor(i / columns) * half + ((i % columns) >> 1)] += n));
    return { columns: half, ns: ns * 2, values: to };
  }

  /** Adds what a row consists of between one time of a list and the next: by part. */
  add(row: number, times: Times, to: Float64Array[]): void {
    const base = row * (this.of.columns + 1);
    for (let part = 0; part < to.length; part++) {
      const [from, sums] = [this.running[part], to[part]];
      if (!from) continue;
      let last = 0;
      for (let i = 0; i < times.column.length; i++) {
        const at = base + times.column[i];
        const now = from[at] + (from[at + 1] - from[at]) * times.part[i];
        if (i > 0) sums[i - 1] += now - last;
        last = now;
      }
    }
  }

  /** The same of columns from one to before another, and the most that one rank waits and computes there; larger shares there stay. */
  columns(row: number, [first, last]: [number, number], to: Cells): void {
    const base = row * (this.of.columns + 1);
    for (let part = 0; part < to.sums.length; part++) {
      const [from, sums] = [this.running[part], to.sums[part]];
      if (!from) continue;
      for (let i = first; i < last; i++) sums[i - first] += from[base + i + 1] - from[base + i];
    }
    for (const [all, shares] of [[this.most, to.most], [this.busiest, to.busiest]] as const) {
      const finest = all[0];
      if (!finest) continue;
      for (let i = first; i < last; i++) {
        const share = Math.min(1, finest.values[row * finest.columns + i] / finest.ns);
        if (share > shares[i - first]) shares[i - first] = share;
      }
    }
  }

  /** The most that a rank of a row waits and computes, as shares of the time about each of so many pixels; larger ones there stay. */
  longest(row: number, from: number, pixel: number, most: Float64Array, busiest: Float64Array, pixels = most.length): void {
    about(this.most, row, [from, pixel], most, pixels);
    about(this.busiest, row, [from, pixel], busiest, pixels);
  }
}

function about(all: Most[], row: number, [from, pixel]: [number, number], to: Float64Array, pixels: number): void {
  const of = all.find((level) => level.ns >= pixel) ?? all[all.length - 1];
  if (!of) return;
  const [base, first, step] = [row * of.columns, (from + pixel / 2) / of.ns, pixel / of.ns];
  for (let x = 0; x < pixels; x++) {
    const column = Math.min(of.columns - 1, Math.max(0, Math.floor(first + x * step)));
    const share = Math.min(1, of.values[base + column] / of.ns);
    if (share > to[x]) to[x] = share;
  }
}

/** Times as columns and how far they are in them. */
export interface Times {
  column: Int32Array;
  part: Float64Array;
}

/** So many pixels' beginnings, and the end of the last. */
export function times(of: Levels, from: number, pixel: number, pixels: number): Times {
  const made = { column: new Int32Array(pixels + 1), part: new Float64Array(pixels + 1) };
  for (let i = 0; i <= pixels; i++) {
    const at = Math.min(of.columns, Math.max(0, (from + i * pixel) / of.column_ns));
    made.column[i] = Math.min(of.columns - 1, Math.floor(at));
    made.part[i] = at - made.column[i];
  }
  return made;
}

/** Numbers of all ranks, in the order of rows. */
export function ranks(of: Levels): number[] {
  return of.ranks.length > 0 ? of.ranks : Array.from({ length: of.count }, (_, i) => i);
}
