// A table that can be sorted, searched and copied.

import { Table, Value } from "./data";
import { button, copy, el } from "./dom";
import { exact, shown, unit } from "./format";

/** Columns before the one with pictures. */
const BEFORE = 2;

/** Rows that are seen at a glance: there is nothing to search. */
const FEW = 10;

/** Rows that are shown before more are asked for. */
const SHOWN = 200;

/** Rows that are printed, as the style has it: a browser takes minutes for thousands, and nobody turns so many pages. */
const PRINTED = 100;

export interface State {
  sort?: string;
  up?: string;
  find?: string;
}

export interface Options {
  /** What the table is, for those who cannot see it. */
  name: string;
  /** What is told of more rows than the page holds. */
  elsewhere?: string;
  state?: State;
  changed?: (state: State) => void;
  /** A picture of a row, and what it is called. */
  picture?: { title: string; of: (row: number) => HTMLElement };
}

function compare(a: Value, b: Value): number {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

const csvCell = (value: Value): string =>
  value === null ? "" : /[",\n]/.test(String(value)) ? `"${String(value).replace(/"/g, '""')}"` : String(value);

export function csv(table: Table, rows: number[]): string {
  const lines = [table.columns.map((c) => c.key).join(",")];
  for (const row of rows) lines.push(table.columns.map((c) => csvCell(c.values[row])).join(","));
  return lines.join("\n") + "\n";
}

export class TableView {
  readonly root = el("div", { class: "table" });
  private state: State;
  private readonly body = el("tbody");
  private readonly said = el("p", { class: "note", role: "status" });
  private readonly printed = el("p", { class: "note printed" });
  private readonly more = button("show more", () => this.show(this.most * 4), { class: "more" });
  private readonly find = el("input", { type: "search", placeholder: "search", "aria-label": "search" });
  private readonly heads: HTMLTableCellElement[] = [];
  private readonly numbers = new Set<string>();
  private order: number[] = [];
  private most = SHOWN;

  constructor(
    private readonly table: Table,
    private readonly options: Options,
  ) {
    this.state = { ...options.state };
    const head = el("tr");
    for (const column of table.columns) {
      const numeric = this.numeric(column.values);
      if (numeric) this.numbers.add(column.key);
      const cell = el("th", { scope: "col", class: numeric ? "number" : "text" });
      cell.append(button(column.title, () => this.sort(column.key), { title: `sort by ${column.key}` }));
      this.heads.push(cell);
      head.append(cell);
    }
    if (options.picture) head.insertBefore(el("th", { scope: "col", class: "plain" }, options.picture.title), head.children[BEFORE]);
    this.find.value = this.state.find ?? "";
    this.find.addEventListener("input", () => this.change({ find: this.find.value }));
    const copyButton = button("copy as CSV", () => void copy(csv(table, this.order), copyButton));
    const caption = el("caption", {}, options.name);
    const inside = el("table", {}, caption, el("thead", {}, head), this.body);
    this.root.append(
      el("div", { class: "tools" }, this.find, copyButton),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.name }, inside),
      this.said,
      this.printed,
      this.more,
    );
    this.fill();
  }

  private numeric(values: Value[]): boolean {
    return values.some((v) => typeof v === "number") && values.every((v) => v === null || typeof v === "number");
  }

  private sort(key: string): void {
    const again = this.state.sort === key;
    const up = again ? this.state.up !== "1" : !this.numbers.has(key);
    this.change({ sort: key, up: up ? "1" : "0" });
  }

  private change(by: State): void {
    this.state = { ...this.state, ...by };
    this.most = SHOWN;
    this.fill();
    this.options.changed?.(this.state);
  }

  /** Shows what an address asks for; one that asks for nothing leaves it as it is. */
  open({ sort, up, find }: State): void {
    if (sort === undefined && find === undefined) return;
    this.state = { sort, up, find };
    this.find.value = find ?? "";
    this.most = SHOWN;
    this.fill();
    this.root.scrollIntoView({ block: "nearest" });
  }

  private fill(): void {
    const { sort, up, find } = this.state;
    this.find.hidden = this.table.rows <= FEW && !find;
    const rows = this.table.columns[0]?.values.length ?? 0;
    this.order = Array.from({ length: rows }, (_, i) => i);
    if (find) {
      const words = find.toLowerCase().split(/\s+/);
      const all = (row: number): string =>
        this.table.columns.map((c) => (typeof c.values[row] === "string" ? c.values[row] : exact("", c.values[row]))).join(" ");
      this.order = this.order.filter((row) => words.every((w) => all(row).toLowerCase().includes(w)));
    }
    const by = this.table.columns.find((c) => c.key === sort)?.values;
    if (by) {
      const sign = up === "1" ? 1 : -1;
      this.order.sort((a, b) => sign * compare(by[a], by[b]) || a - b);
    }
    this.heads.forEach((head, i) => {
      const sorted = this.table.columns[i].key === sort && by;
      head.setAttribute("aria-sort", sorted ? (up === "1" ? "ascending" : "descending") : "none");
    });
    this.show(this.most);
  }

  private show(most: number): void {
    this.most = most;
    const rows = this.order.slice(0, most).map((row) => this.row(row));
    this.body.replaceChildren(...rows);
    const held = this.table.columns[0]?.values.length ?? 0;
    const left = this.table.rows - held;
    const said: string[] = [];
    if (this.state.find) said.push(`${this.order.length} of ${held} rows fit the search`);
    if (left > 0) {
      const sums = Object.entries(this.table.rest).map(([key, sum]) => `${key}: ${shown(key, sum)}`);
      said.push(`${left} more rows are not on this page (${this.options.elsewhere ?? "st-stat"}); together ${sums.join(", ")}`);
    }
    this.said.textContent = said.join("; ");
    const all = this.order.length;
    this.printed.textContent = all > PRINTED ? `of ${all} rows the first ${PRINTED} are printed: the page has ${left > 0 ? `${held} of ${this.table.rows}` : "all"}` : "";
    this.more.hidden = this.order.length <= most;
    this.more.textContent = `show more (${Math.max(0, this.order.length - most)} left)`;
  }

  private row(row: number): HTMLTableRowElement {
    const made = el("tr");
    for (const column of this.table.columns) {
      const value = column.values[row];
      const texts = column.texts;
      const text = texts && texts.length > 0 ? texts[row] : shown(column.key, value);
      const cell = el("td", { class: this.numbers.has(column.key) ? "number" : "text" }, text);
      cell.dataset.key = column.key;
      if (typeof value === "number") {
        cell.dataset.value = String(value);
        cell.title = exact(column.key, value) || unit(column.key);
      }
      made.append(cell);
    }
    if (this.options.picture) made.insertBefore(el("td", {}, this.options.picture.of(row)), made.children[BEFORE]);
    return made;
  }
}
