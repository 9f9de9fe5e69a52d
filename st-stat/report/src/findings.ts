// What costs most, in the words of st-stat why, all its numbers among them, with links to where it shows.

import { Report, column, number } from "./data";
import { el } from "./dom";
import { duration, exact, percent } from "./format";
import * as route from "./route";

/** Findings that stand above the timeline; the others are below it. */
const FIRST = 4;

/** What is about ranks, not about calls. */
const OF_RANKS = ["crowded", "no processor", "recording paused", "late end"];

/** Where a finding shows: when it costs most, its call sites, and its ranks. */
function links(report: Report, row: number): HTMLElement[] {
  const of = (key: string): string => String(column(report.findings, key)?.[row] ?? "");
  const link = (text: string, view: string, state: Record<string, string>): HTMLElement => el("a", { class: "show", href: route.text({ view, of: state }) }, text);
  const made: HTMLElement[] = [];
  if (report.timeline?.spots.some((spot) => spot.finding === row)) made.push(link("show in the timeline", "timeline", { finding: String(row) }));
  const [kind, where] = [of("kind"), of("where")];
  if (report.sites && !["", "(others)"].includes(where) && !OF_RANKS.includes(kind)) {
    made.push(link("call site", "sites", { find: where }));
  }
  if (OF_RANKS.includes(kind)) made.push(link("ranks", "ranks", { sort: "time_ns", up: "0" }));
  else if (of("victims") !== "0") made.push(link("ranks", "ranks", { sort: column(report.ranks, "rank") ? "computation_ns" : "computation_most_ns", up: "0" }));
  return made;
}

/** The most costly findings, and the others. */
export function findings(report: Report): [HTMLElement, HTMLElement | null] {
  const table = report.findings;
  const root = el("div", { class: "findings" });
  if (!table) {
    root.append(el("p", {}, "Who waits for whom cannot be told of this trace: see what it lacks, above."));
    return [root, null];
  }
  const wait = (column(report.waits, "wait_ns") ?? []).reduce<number>((sum, ns) => sum + (typeof ns === "number" ? ns : 0), 0);
  const time = (column(report.ranks, "time_ns") ?? []).reduce<number>((sum, ns) => sum + (typeof ns === "number" ? ns : 0), 0);
  root.append(el("p", {}, `${percent(wait, time)} of the time of all ranks is waiting for others.`));
  const what = column(table, "what") ?? [];
  const well = report.lacks.length === 0 ? "All is well: nothing costs more than 1 % of the time." : "Nothing of what is there costs more than 1 % of the time.";
  if (what.length === 0) root.append(el("p", {}, well));
  const of = (key: string, row: number): string => String(column(table, key)?.[row] ?? "");
  const [list, others] = [el("ol"), el("ol")];
  what.forEach((text, row) => {
    const cost = number(table, "cost_ns", row) ?? 0;
    const share = number(table, "share_percent", row) ?? 0;
    const number_of = (value: number, key: string, shown: string): HTMLElement =>
      el("span", { class: "cost", "data-key": key, "data-value": String(value), title: exact(key, value) }, shown);
    (row < FIRST ? list : others).append(
      el(
        "li",
        {},
        el("span", { class: "node" }, el("span", { class: "bar wait", style: `width: ${Math.min(100, share)}%` }), el("b", {}, String(text))),
        el(
          "p",
          {},
          cost > 0 && number_of(share, "share_percent", `${share.toFixed(1)} %`),
          cost > 0 && number_of(cost, "cost_ns", duration(cost)),
          `${of("told", row)} `,
          ...links(report, row),
        ),
      ),
    );
  });
  root.append(list);
  if (what.length <= FIRST) return [root, null];
  const more = what.length - FIRST;
  return [root, el("div", { class: "findings" }, el("h2", {}, more === 1 ? "One more finding" : `${more} more findings`), others)];
}
