// What ranks do as loops and calls, with bars of the time that each takes by mean times of calls: logical time.

import { Structure } from "./data";
import { el } from "./dom";
import { count, duration } from "./format";

/** Calls, and time by their means, of each node with all below it. */
function weights(of: Structure): { calls: number[]; ns: number[] } {
  const n = of.depth.length;
  const [calls, ns] = [new Array<number>(n).fill(0), new Array<number>(n).fill(0)];
  const around: number[] = [];
  for (let i = 0; i < n; i++) {
    around.length = of.depth[i];
    const call = of.call[i];
    if (call !== null) {
      const { mean_ns: mean, before_ns: before } = of.calls[call];
      for (const at of [...around, i]) {
        calls[at] += of.runs[i];
        ns[at] += of.runs[i] * ((mean ?? 0) + (before ?? 0));
      }
    }
    around[of.depth[i]] = i;
  }
  return { calls, ns };
}

function list(of: Structure): HTMLElement {
  const { calls, ns } = weights(of);
  const roots = of.depth.map((depth, i) => (depth === 0 ? i : -1)).filter((i) => i >= 0);
  const timed = roots.some((i) => ns[i] > 0);
  const by = timed ? ns : calls;
  const all = Math.max(1, roots.reduce((sum, i) => sum + by[i], 0));
  const outermost = el("ul", { class: "loops" });
  const lists = [outermost];
  const runs: number[] = [1];
  of.depth.forEach((depth, i) => {
    // What this rank never does, others of its group do.
    if (of.runs[i] === 0) return;
    lists.length = depth + 1;
    const call = of.call[i];
    const visits = runs[depth] || 1;
    const each = of.runs[i] / visits;
    const times = each === 1 ? "" : Number.isInteger(each) ? ` ×${count(each)}` : ` ×${each.toFixed(2)} in the mean`;
    const share = by[i] / all;
    const what = call === null ? "loop" : of.calls[call].function;
    const place = call === null ? "" : of.calls[call].place;
    const amount = timed ? duration(Math.round(ns[i])) : `${count(calls[i])} calls`;
    const bar = el("span", { class: call === null ? "bar" : "bar call", style: `width: ${(share * 100).toFixed(2)}%` });
    const head = el(
      "span",
      { class: "node", title: `${count(calls[i])} calls in all` },
      bar,
      el("b", {}, `${what}${times}`),
      place ? el("span", { class: "place" }, ` ${place}`) : null,
      el("span", { class: "amount" }, `${amount} · ${(share * 100).toFixed(1)} %`),
    );
    if (call === null) {
      const below = el("ul");
      const details = el("details", {}, el("summary", {}, head), below);
      details.open = depth < 3;
      lists[depth].append(el("li", {}, details));
      lists.push(below);
      runs[depth + 1] = of.runs[i];
    } else {
      lists[depth].append(el("li", {}, head));
    }
  });
  return outermost;
}

export function loops(all: Structure[]): HTMLElement {
  const root = el("div");
  all.forEach((of, i) => {
    const timed = of.calls.some((call) => call.mean_ns !== null);
    const thread = of.thread > 0 ? `thread ${of.thread} of ` : "";
    const one = of.ranks === String(of.rank);
    const title = `${thread}${one ? "rank" : "ranks"} ${of.ranks}`;
    const note = timed
      ? `Bars are logical time: how often rank ${of.rank} makes a call, times what that and the computation before it take in the mean of these ranks.`
      : `Bars are numbers of calls of rank ${of.rank}: the trace holds no times.`;
    const details = el("details", {}, el("summary", {}, title), el("p", { class: "note" }, note));
    // Lists are made when they are looked at: there may be thousands.
    const make = (): void => {
      if (!details.open || details.querySelector(".loops")) return;
      details.append(list(of));
      if (of.more > 0) details.append(el("p", { class: "note" }, `${count(of.more)} more calls and loops are not on this page (st-view)`));
    };
    details.addEventListener("toggle", make);
    details.open = i === 0;
    make();
    root.append(details);
  });
  return root;
}
