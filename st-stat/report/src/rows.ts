// What the rows of the whole run are: ranks, groups of them, or nodes.

import { Levels, Timeline } from "./data";
import { count } from "./format";
import { Sums, ranks } from "./sums";

export type By = "ranks" | "nodes";

export interface Rows {
  by: By;
  levels: Levels;
  sums: Sums;
  /** Rows of single ranks or nodes. */
  count: number;
  /** In which of them a rank is. */
  rowOf: Map<number, number>;
  /** What stands before one of them. */
  label: (row: number) => string;
  /** Who is in the group of rows that one of them belongs to, in words. */
  who: (group: number) => string;
}

/** Ranks as rows. */
export function rankRows(data: Timeline): Rows {
  const all = ranks(data.levels);
  const { group } = data.levels;
  return {
    by: "ranks",
    levels: data.levels,
    sums: new Sums(data.levels),
    count: all.length,
    rowOf: new Map(all.map((rank, row) => [rank, row])),
    label: (row) => count(all[Math.floor(row)]),
    who: (of) => {
      const [a, b] = [all[of * group], all[Math.min(all.length, (of + 1) * group) - 1]];
      return a === b ? `rank ${a}` : `ranks ${a} to ${b} together`;
    },
  };
}

/** Characters of names that have room. */
const ROOM = 7;

/** Names without what all begin with, if they are too long: what differs is at the end. */
function brief(names: string[]): string[] {
  if (names.every((name) => name.length <= ROOM)) return names;
  let same = 0;
  while (names.every((name) => name.length > same + 1 && name[same] === names[0][same] && !/[0-9]/.test(name[same]))) same++;
  return names.map((name) => name.slice(same));
}

/** Nodes as rows, if there are several. */
export function nodeRows(data: Timeline): Rows | null {
  const { nodes } = data;
  if (!nodes) return null;
  const all = ranks(data.levels);
  const sizes = nodes.names.map(() => 0);
  const short = brief(nodes.names);
  for (const node of nodes.node) sizes[node]++;
  return {
    by: "nodes",
    levels: nodes.levels,
    sums: new Sums(nodes.levels),
    count: nodes.names.length,
    rowOf: new Map(all.map((rank, i) => [rank, nodes.node[i]])),
    label: (row) => short[Math.floor(row)],
    who: (of) => `node ${nodes.names[of]}, ${sizes[of] === 1 ? "one rank" : `${count(sizes[of])} ranks together`}`,
  };
}
