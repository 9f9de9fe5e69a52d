// What has changed since another run: bars to the left for what is faster, to the right for what is slower.

import { Against, Table, column, number } from "./data";
import { el } from "./dom";
import { count, duration, exact, shown } from "./format";

/** Bars at most: the table below has all. */
const MOST = 24;

/** What is shown where nothing is found. */
const UNSURE = "unsure";

/** What counts as found, with its colour. */
const FOUND: Record<string, string> = { slower: "low", faster: "good", new: "soft", gone: "soft" };

/** Change of a row by the time of the run, and to what it is known, in percent of the run. */
function change(of: Table, row: number): { percent: number; sure: number } {
  const percent = number(of, "run_percent", row) ?? 0;
  const [by, known] = [number(of, "change_percent", row) ?? 0, number(of, "uncertainty_percent", row) ?? 0];
  return { percent, sure: by === 0 ? 0 : Math.abs((known / by) * percent) };
}

function bar(of: Table, row: number, most: number): HTMLElement {
  const text = (key: string): string => String(column(of, key)?.[row] ?? "");
  const { percent, sure } = change(of, row);
  const at = (value: number): number => 50 + (50 * value) / most;
  const [a, b] = [Math.min(50, at(percent)), Math.max(50, at(percent))];
  const verdict = text("verdict");
  const box = (name: string, from: number, to: number, style = ""): HTMLElement =>
    el("span", { class: name, style: `left: ${Math.max(0, from).toFixed(2)}%; width: ${Math.max(0, Math.min(100, to) - Math.max(0, from)).toFixed(2)}%; ${style}` });
  const value = (key: string): string => shown(key, number(of, key, row));
  const times = [number(of, "first_ns", row), number(of, "second_ns", row)].map((ns) => (ns === undefined ? "-" : duration(ns))).join(" → ");
  const known = number(of, "uncertainty_percent", row);
  const percents = number(of, "change_percent", row) === undefined ? verdict : `${value("change_percent")}${known === undefined ? "" : ` ± ${value("uncertainty_percent")}`}`;
  const where = text("phase") === "before" ? `computation before ${text("function")}` : text("function");
  return el(
    "li",
    { title: `${exact("run_percent", percent)} of the run` },
    el("span", { class: "what" }, el("b", {}, where), ` ${text("place")}`),
    el(
      "span",
      { class: "change" },
      box("by", a, b, `background: var(--${FOUND[verdict] ?? "soft"})`),
      sure > 0 && box("sure", at(percent - sure), at(percent + sure)),
      el("span", { class: "zero" }),
    ),
    el("span", { class: "amount" }, `${times} per rank · ${percents} · ${value("run_percent")} of the run`),
  );
}

/** What is said where nothing is found, and of so many call sites it is not known. */
function nothing(unsure: number, cut: boolean): HTMLElement {
  if (unsure === 0) return el("p", {}, "No call site takes longer or less long than chance makes it.");
  const sites = `${cut ? "at least " : ""}${count(unsure)} call ${unsure === 1 ? "site" : "sites"}`;
  return el("p", {}, `Of ${sites}, before or in their calls, it cannot be told whether they take longer: chance may make such changes.`);
}

export function changes(of: Against): HTMLElement {
  const verdicts = (column(of.changes, "verdict") ?? []).map(String);
  const all = verdicts.map((_, row) => row);
  const found = all.filter((row) => verdicts[row] in FOUND);
  const unsure = all.filter((row) => verdicts[row] === UNSURE);
  const rows = found.length > 0 ? found : unsure;
  const drawn = rows.slice(0, MOST);
  const most = drawn.reduce((most, row) => Math.max(most, Math.abs(change(of.changes, row).percent) + change(of.changes, row).sure), 0.001);
  const item = (text: string, name: string): HTMLElement => el("li", {}, el("span", { class: "swatch", style: `background: var(--${name})` }), text);
  const left = rows.length - drawn.length;
  return el(
    "div",
    {},
    el("p", {}, `Since ${of.command || "the other run"}: ${of.runs}.`),
    el("p", {}, `Call sites, before and in their calls: ${of.counts}.`),
    found.length === 0
      ? nothing(unsure.length, of.changes.rows > verdicts.length)
      : el("ul", { class: "legend" }, item("slower", "low"), item("faster", "good"), item("new or gone", "soft"), el("li", {}, el("span", { class: "swatch line" }), "to what that is known, in 99 of 100 cases")),
    drawn.length > 0 && el("p", { class: "note" }, `By the time of the run: to the left less, to the right more, ${most.toFixed(1)} % at the edges.`),
    el("ol", { class: "changes" }, ...drawn.map((row) => bar(of.changes, row, most))),
    left > 0 && el("p", { class: "note" }, `${left} more are in the table.`),
  );
}
