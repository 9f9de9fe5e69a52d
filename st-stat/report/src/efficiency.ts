// The efficiency tree: each is the product of those below it.

import { Table, column } from "./data";
import { el } from "./dom";

/** Over this it counts as good (the POP centre). */
const GOOD = 0.8;

export function efficiency(table: Table): HTMLElement {
  const names = column(table, "measure") ?? [];
  const values = column(table, "value") ?? [];
  const texts = table.columns.find((c) => c.key === "value")?.texts ?? [];
  const item = (name: string, ...below: HTMLElement[]): HTMLElement => {
    const at = names.indexOf(name);
    const value = values[at];
    const text = texts[at] ?? "-";
    const known = typeof value === "number";
    const width = known ? Math.max(0, Math.min(1, value)) * 100 : 0;
    const bar = el("span", { class: known && value < GOOD ? "bar low" : "bar", style: `width: ${width.toFixed(1)}%` });
    const amount = el("span", { class: "amount", "data-value": String(value ?? ""), title: String(value ?? "") }, text);
    return el("li", {}, el("span", { class: "node" }, bar, el("b", {}, name), amount), below.length > 0 && el("ul", {}, ...below));
  };
  const times = names.filter((name, i) => typeof name === "string" && / /.test(texts[i] ?? ""));
  const rows = times.map((name) => {
    const at = names.indexOf(name);
    const value = el("td", { class: "number", "data-value": String(values[at]), title: `${String(values[at])} ns` }, texts[at]);
    return el("tr", {}, el("th", { scope: "row" }, String(name)), value);
  });
  return el(
    "div",
    { class: "efficiency" },
    el("p", { class: "note" }, `Each is the product of those below it (the POP centre's convention); over ${GOOD} counts as good.`),
    el(
      "ul",
      { class: "loops" },
      item("parallel efficiency", item("load balance"), item("communication efficiency", item("serialisation"), item("transfer"))),
    ),
    el("table", { class: "plain" }, el("tbody", {}, ...rows)),
  );
}
