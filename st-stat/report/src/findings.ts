// What costs most, in the words of st-stat why, with links to where it shows.

import { Report, column, number } from "./data";
import { button, el } from "./dom";
import { count, duration, exact, percent, ranks } from "./format";

/** Findings that stand above the timeline; the others are below it. */
const FIRST = 4;

/** The most costly findings, and the others. */
export function findings(report: Report, go: (finding: number) => void): [HTMLElement, HTMLElement | null] {
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
  // Some are wherever ranks are, some of many call sites of one function.
  const where = (row: number): string => {
    const at = of("where", row);
    if (["", "(others)"].includes(at)) return "wherever ranks are";
    const sites = number(table, "sites", row) ?? 1;
    return sites > 1 ? `at ${at.split(" ", 1)[0]}, ${count(sites)} call sites, most at ${at}` : `at ${at}`;
  };
  const [list, others] = [el("ol"), el("ol")];
  what.forEach((text, row) => {
    const cost = number(table, "cost_ns", row) ?? 0;
    const share = number(table, "share_percent", row) ?? 0;
    const spot = report.timeline?.spots.some((s) => s.finding === row);
    const cause = of("cause", row);
    const part = number(table, "cause_percent", row);
    const many = of("cause_ranks", row).includes(" ");
    const does = cause === "computation" ? (many ? "compute longer before" : "computes longer before") : many ? "take longer in" : "takes longer in";
    const due = cause ? `${part ?? 0} % of it since ${ranks(of("cause_ranks", row))} ${does} ${of("place", row)}` : "";
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
          `${where(row)}${due ? `; ${due}` : ""} (${of("sure", row)}) `,
          spot && button("show in the timeline", () => go(row), { class: "small" }),
        ),
      ),
    );
  });
  root.append(list);
  if (what.length <= FIRST) return [root, null];
  const more = what.length - FIRST;
  return [root, el("div", { class: "findings" }, el("h2", {}, more === 1 ? "One more finding" : `${more} more findings`), others)];
}
