// What the rows of the whole run are: ranks, groups of them, nodes, or clusters.

import { CellColours } from "./cells";
import { Groups, Levels, Timeline } from "./data";
import { count } from "./format";
import { Sums, ranks } from "./sums";

/** What rows may be, and one of them. */
export const ONE = { ranks: "rank", nodes: "node", clusters: "cluster" } as const;

export type By = keyof typeof ONE;

export interface Rows {
  by: By;
  levels: Levels;
  sums: Sums;
  colours: CellColours;
  /** Rows of single ranks, nodes or clusters. */
  count: number;
  /** In which of them a rank is. */
  rowOf: Map<number, number>;
  /** What stands before one of them. */
  label: (row: number) => string;
  /** Which ranks it is made of; nothing, if it is a rank. */
  ranks: (row: number) => string;
  /** Who is in the group of rows that one of them belongs to, in words. */
  who: (group: number) => string;
}

function drawn(levels: Levels): Pick<Rows, "levels" | "sums" | "colours"> {
  const sums = new Sums(levels);
  return { levels, sums, colours: new CellColours(levels, sums) };
}

/** Ranks as rows. */
export function rankRows(levels: Levels): Rows {
  const all = ranks(levels);
  const { group } = levels;
  return {
    by: "ranks",
    ...drawn(levels),
    count: all.length,
    rowOf: new Map(all.map((rank, row) => [rank, row])),
    label: (row) => count(all[Math.floor(row)]),
    ranks: () => "",
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

/** All that rows may be. */
export function allRows(data: Timeline): Rows[] {
  const all = [rankRows(data.levels)];
  for (const by of ["nodes", "clusters"] as const) {
    const of = data[by];
    if (of) all.push(groupRows(data, by, of));
  }
  return all;
}

/** Nodes or clusters as rows. */
function groupRows(data: Timeline, by: By, groups: Groups): Rows {
  const all = ranks(data.levels);
  const sizes = groups.names.map(() => 0);
  const short = brief(groups.names);
  for (const group of groups.of) sizes[group]++;
  return {
    by,
    ...drawn(groups.levels),
    count: groups.names.length,
    rowOf: new Map(all.map((rank, i) => [rank, groups.of[i]])),
    label: (row) => short[Math.floor(row)],
    ranks: (row) => groups.ranks[Math.floor(row)],
    who: (of) => `${ONE[by]} ${groups.names[of]}, ${sizes[of] === 1 ? `rank ${groups.ranks[of]}` : `${count(sizes[of])} ranks together (${groups.ranks[of]})`}`,
  };
}
