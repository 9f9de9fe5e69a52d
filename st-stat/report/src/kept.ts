// What the trace itself is: where its bytes go, who made it, and how far its clocks agree.

import { Clocks, Kept, Table, column } from "./data";
import { cleared, colour, el } from "./dom";
import { count, duration } from "./format";
import { TableView } from "./table";

/** Clocks that are drawn at most: those that run away fastest. */
const LINES = 64;
const HEIGHT = 220;
const LEFT = 70;
const BOTTOM = 22;

/** How a clock has moved against that of rank 0 since it was compared first. */
interface Drift {
  rank: number;
  at: number[];
  by: number[];
  error: number[];
}

function drifts(of: Table): Drift[] {
  const numbers = (key: string): number[] => (column(of, key) ?? []).map(Number);
  const [ranks, at, offset, error] = ["rank", "local_ns", "offset_ns", "error_ns"].map(numbers);
  const all = new Map<number, Drift>();
  const first = new Map<number, { at: number; offset: number }>();
  ranks.forEach((rank, i) => {
    const one = all.get(rank) ?? { rank, at: [], by: [], error: [] };
    const from = first.get(rank) ?? { at: at[i], offset: offset[i] };
    all.set(rank, one);
    first.set(rank, from);
    one.at.push(at[i] - from.at);
    one.by.push(offset[i] - from.offset);
    one.error.push(error[i]);
  });
  const far = (one: Drift): number => one.by.reduce((most, by) => Math.max(most, Math.abs(by)), 0);
  return [...all.values()].filter((one) => one.at.length > 1).sort((a, b) => far(b) - far(a));
}

/** Lines of clocks over time, each with a bar as high as it may be wrong. */
class DriftView {
  readonly root = el("div");
  private readonly canvas = el("canvas", { role: "img", "aria-label": "how clocks move against that of rank 0" });
  private readonly shown: Drift[];

  constructor(of: Table) {
    const all = drifts(of);
    this.shown = all.slice(0, LINES);
    const more = all.length - this.shown.length;
    const note = `How far each rank's clock has moved against that of rank 0 since the two were compared first; bars: to what that is known.${more > 0 ? ` ${more} clocks that move less are not drawn.` : ""}`;
    if (this.shown.length > 0) this.root.append(el("p", { class: "note" }, note), this.canvas);
  }

  draw(): void {
    if (this.shown.length === 0) return;
    const on = cleared(this.canvas, HEIGHT);
    if (!on) return;
    const { context, width, height } = on;
    const until = this.shown.reduce((most, one) => Math.max(most, ...one.at), 1);
    const ends = this.shown.flatMap((one) => one.by.flatMap((by, i) => [by - one.error[i], by + one.error[i]]));
    const [low, high] = [Math.min(0, ...ends), Math.max(1, ...ends)];
    const room = height - BOTTOM;
    const x = (t: number): number => LEFT + (t / until) * (width - LEFT - 70);
    const y = (ns: number): number => 8 + ((high - ns) / Math.max(1, high - low)) * (room - 16);
    context.strokeStyle = colour("rule");
    context.fillStyle = colour("ink");
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const ns of [...new Set([low, 0, high])]) {
      context.beginPath();
      context.moveTo(LEFT, y(ns));
      context.lineTo(width, y(ns));
      context.stroke();
      context.textAlign = "right";
      if (ns === 0 || Math.abs(y(ns) - y(0)) > 14) context.fillText(duration(Math.round(ns)), LEFT - 6, y(ns));
    }
    context.textAlign = "left";
    context.fillText("0 s", LEFT, height - 10);
    context.textAlign = "right";
    context.fillText(`${duration(until)} later`, width - 70, height - 10);
    context.textAlign = "left";
    let last = -Infinity;
    for (const one of [...this.shown].sort((a, b) => a.by[a.by.length - 1] - b.by[b.by.length - 1]).reverse()) {
      context.strokeStyle = colour("mpi");
      context.beginPath();
      one.at.forEach((t, i) => (i === 0 ? context.moveTo(x(t), y(one.by[i])) : context.lineTo(x(t), y(one.by[i]))));
      one.at.forEach((t, i) => {
        context.moveTo(x(t), y(one.by[i] - one.error[i]));
        context.lineTo(x(t), y(one.by[i] + one.error[i]));
      });
      context.stroke();
      // Names of those between which there is room.
      const end = y(one.by[one.by.length - 1]);
      if (end - last < 13) continue;
      last = end;
      context.fillText(`rank ${one.rank}`, x(one.at[one.at.length - 1]) + 6, end);
    }
  }
}

function clocks(of: Clocks, before: Table | null): { root: HTMLElement; draw: () => void } {
  const root = el("div", {}, el("h2", {}, "Clocks"));
  const violated = (column(of.violations, "violated") ?? []).reduce<number>((sum, n) => sum + (typeof n === "number" ? n : 0), 0);
  const state = of.corrected ? "Clocks have been corrected by st-sync" : "Clocks are as recorded: no program has corrected them";
  const some = of.corrected ? "some messages still arrive" : "some messages arrive";
  const agree = of.violations ? `; ${violated > 0 ? some : "no message arrives"} before ${violated > 0 ? "they were" : "it was"} sent` : "";
  root.append(el("p", {}, `${state}${agree}.`));
  if (before) root.append(el("h3", {}, "In the other trace of this run"), new TableView(before, { name: "violations of the other trace" }).root, el("h3", {}, "In this trace"));
  if (of.violations) root.append(new TableView(of.violations, { name: "violations" }).root);
  else root.append(el("p", { class: "note" }, `Whether messages arrive before they were sent is not known: ${of.no_violations ?? "no exact times"}.`));
  if (of.pairs) root.append(el("h3", {}, "Between which ranks"), new TableView(of.pairs, { name: "violated pairs", elsewhere: "st-stat violations --pairs" }).root);
  if (!of.offsets) {
    const why = of.corrected ? "st-sync has used the comparisons of clocks, and they are not in the trace any more" : "the trace holds no comparisons of clocks (of ranks on one node there are none)";
    root.append(el("p", { class: "note" }, `How clocks moved while the program ran is not shown: ${why}.`));
    return { root, draw: () => undefined };
  }
  const view = new DriftView(of.offsets);
  root.append(el("h3", {}, "Comparisons while recording"), view.root, new TableView(of.offsets, { name: "comparisons of clocks" }).root);
  return { root, draw: () => view.draw() };
}

export function kept(of: Kept, before: Table | null): { root: HTMLElement; draw: () => void } {
  const root = el("section", {}, el("h2", {}, "Where the trace's bytes go"));
  const share = (table: Table) => ({
    title: "",
    of: (row: number) => {
      const percent = Number(column(table, "share_percent")?.[row] ?? 0);
      return el("span", { class: "box" }, el("span", { class: "part", style: `width: ${Math.min(100, percent)}%` }));
    },
  });
  const add = (title: string, name: string, elsewhere: string, table: Table | null): void => {
    if (table) root.append(el("h3", {}, title), new TableView(table, { name, elsewhere, picture: share(table) }).root);
  };
  if (of.no_sizes) root.append(el("p", {}, of.no_sizes));
  add("By kind of frame", "bytes by frame", "st-stat sizes", of.frames);
  add("By call site", "bytes by call site", "st-stat sizes --by site", of.sites);
  if (of.parameters) {
    const view = new TableView(of.parameters, { name: "bytes by parameter", elsewhere: "st-stat sizes --by parameter", picture: share(of.parameters) });
    root.append(el("details", { class: "rows" }, el("summary", {}, `By parameter (${count(of.parameters.rows)})`), view.root));
  }
  const about = clocks(of.clocks, before);
  root.append(about.root);
  if (of.tools.length > 0) root.append(el("h2", {}, "What made the trace"), el("ol", { class: "made" }, ...of.tools.map((line) => el("li", {}, line))));
  return { root, draw: about.draw };
}
