// How calls of each site are spread: a table with a box for each, from the shortest to the longest by the logarithm.

import { Table, number } from "./data";
import { el } from "./dom";
import { duration } from "./format";

/** Durations from one to another, as parts of the width. */
function scale(table: Table): (ns: number) => number {
  const all = (key: string): number[] => table.columns.find((c) => c.key === key)?.values.filter((v): v is number => typeof v === "number") ?? [];
  const most = Math.log(1 + [...all("longest_ns"), ...all("mean_ns")].reduce((a, b) => Math.max(a, b), 1));
  const least = Math.log(1 + [...all("shortest_ns"), ...all("mean_ns")].reduce((a, b) => Math.min(a, b), Infinity));
  return (ns) => (most > least ? Math.min(1, Math.max(0, (Math.log(1 + ns) - least) / (most - least))) : 0);
}

/** The box of a row: shortest to longest, 10 to 90 %, median. */
export function boxes(table: Table): (row: number) => HTMLElement {
  const at = scale(table);
  return (row) => {
    const of = (key: string): number | undefined => number(table, key, row);
    const box = el("span", { class: "box" });
    const span = (name: string, from: number | undefined, to: number | undefined): void => {
      if (from === undefined || to === undefined) return;
      const style = `left: ${(at(from) * 100).toFixed(2)}%; width: ${((at(to) - at(from)) * 100).toFixed(2)}%`;
      box.append(el("span", { class: name, style }));
    };
    span("all", of("shortest_ns"), of("longest_ns"));
    span("most", of("percent_10_ns"), of("percent_90_ns"));
    const middle = of("median_ns") ?? of("mean_ns");
    span("middle", middle, middle);
    box.title = `from ${duration(of("shortest_ns") ?? 0)} to ${duration(of("longest_ns") ?? 0)}, the logarithm; the box is 10 to 90 %`;
    return box;
  };
}
