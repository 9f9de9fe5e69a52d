// Sums of the timeline at all levels of detail: each has half as many columns as the one before, and nothing is lost on the way.

import { Levels } from "./data";

/** What a cell consists of. */
export const PARTS = ["computation", "MPI", "late sender", "late receiver", "collective", "one-sided"] as const;
export const KINDS = PARTS.slice(2);

export interface Level {
  columns: number;
  ns: number;
  /** By part, row by row; MPI is without waits. */
  parts: Float64Array[];
  /** The most that one rank of a row waits, if rows are several. */
  most: Float64Array | null;
}

function halved(of: Level, rows: number): Level {
  const columns = Math.ceil(of.columns / 2);
  const join = (from: Float64Array, both: (a: number, b: number) => number): Float64Array => {
    const to = new Float64Array(rows * columns);
    for (let row = 0; row < rows; row++) {
      for (let i = 0; i < of.columns; i++) {
        const at = row * columns + (i >> 1);
        to[at] = both(to[at], from[row * of.columns + i]);
      }
    }
    return to;
  };
  const sum = (a: number, b: number): number => a + b;
  // The rank that waits most may be another in each half: the sum is no less than what it waits in both.
  const most = of.most && join(of.most, sum);
  return { columns, ns: of.ns * 2, parts: of.parts.map((part) => join(part, sum)), most };
}

/** All levels, the finest first. */
export function levels(of: Levels): Level[] {
  const cells = of.rows * of.columns;
  const waits = of.waits.map((kind) => (kind.length > 0 ? Float64Array.from(kind) : new Float64Array(cells)));
  const own = Float64Array.from(of.mpi);
  for (const kind of waits) for (let i = 0; i < cells; i++) own[i] = Math.max(0, own[i] - kind[i]);
  const parts = [Float64Array.from(of.computation), own, ...waits];
  const all: Level[] = [
    { columns: of.columns, ns: of.column_ns, parts, most: of.most.length > 0 ? Float64Array.from(of.most) : null },
  ];
  while (all[all.length - 1].columns > 32) all.push(halved(all[all.length - 1], of.rows));
  return all;
}

/** Numbers of all ranks, in the order of rows. */
export function ranks(of: Levels): number[] {
  return of.ranks.length === 1 ? Array.from({ length: of.ranks[0] + 1 }, (_, i) => i) : of.ranks;
}
