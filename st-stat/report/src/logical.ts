// Logical time: what ranks do where the trace does not tell when. Rows are ranks that do the same; a loop is there once, as wide as all its
// turns, and its body fills it.

import { LogicalTime, column } from "./data";
import { button, colour, el, fit } from "./dom";
import { count, duration, percent } from "./format";
import { LEFT, TOP } from "./frame";
import { Moved, Part } from "./moved";

/** A loop or a call. Begin and width are ns, or calls where no times are known. */
export interface Box {
  row: number;
  depth: number;
  what: string;
  loop: boolean;
  /** How often in all, and in each turn of the loop around it; none of others. */
  runs: number | null;
  turns: number;
  calls: number;
  begin: number;
  computation: number;
  mpi: number;
  wide: number;
  place: string;
}

export interface Row {
  ranks: string;
  thread: number;
  boxes: Box[];
  /** How deep loops are. */
  depth: number;
  wide: number;
}

export interface Options {
  height: () => number;
  /** A picture that is pressed, not moved. */
  small?: boolean;
  pressed?: () => void;
  changed?: (seen: Part) => void;
}

/** Room for a loop's number of turns, and what a row needs to have any, in CSS pixels. */
const BAND = 14;
const ROOMY = 18;
/** Room that a row has at first, if there are many. */
const FIRST = 48;

/** Rows of the table of boxes, which stand in the order of the program. */
export function layout({ boxes: table, timed }: LogicalTime): Row[] {
  const of = (key: string) => column(table, key) ?? [];
  const [number, ranks, threads, levels, what, runs, calls, begins, computation, mpi, places] = ["row", "ranks", "thread", "level", "what", "runs", "calls", "begin_ns", "computation_ns", "mpi_ns", "place"].map(of);
  const rows: Row[] = [];
  let around: Box[] = [];
  number.forEach((row, i) => {
    const at = Number(row);
    if (!rows[at]) {
      rows[at] = { ranks: String(ranks[i]), thread: Number(threads[i]), boxes: [], depth: 0, wide: 0 };
      around = [];
    }
    const depth = Number(levels[i]);
    around.length = depth;
    const often = runs[i] === null ? null : Number(runs[i]);
    const visits = depth > 0 ? (around[depth - 1].runs ?? 1) : 1;
    const [before, inside] = [Number(computation[i] ?? 0), Number(mpi[i] ?? 0)];
    const box: Box = {
      row: at, depth, what: String(what[i]), loop: what[i] === "loop", runs: often, turns: (often ?? 0) / Math.max(1, visits), calls: Number(calls[i]),
      begin: timed ? Number(begins[i]) : rows[at].wide, computation: before, mpi: inside, wide: timed ? before + inside : Number(calls[i]), place: String(places[i] ?? ""),
    };
    around.push(box);
    rows[at].boxes.push(box);
    if (box.loop) rows[at].depth = Math.max(rows[at].depth, depth + 1);
    else rows[at].wide += box.wide;
  });
  return rows;
}

const times = (turns: number): string => (Number.isInteger(turns) ? `×${count(turns)}` : `×${turns.toFixed(2)}`);

export class LogicalView extends Moved<Part> {
  readonly root = el("div", { class: "logical" });
  readonly rows: Row[];
  private readonly wide: number;
  private readonly about = el("div", { class: "about", "aria-live": "polite" }, "Point at a loop or a call.");
  private readonly said = el("p", { class: "note", role: "status" });
  protected seen: Part;
  /** The loop that was gone to last. */
  private gone: Box | undefined;
  private pointer: { x: number; y: number } | undefined;

  constructor(
    private readonly data: LogicalTime,
    private readonly options: Options,
  ) {
    super();
    this.rows = layout(data);
    this.wide = Math.max(1, ...this.rows.map((row) => row.wide));
    this.seen = this.whole;
    this.canvas.setAttribute("aria-label", `${data.told}; the table has all of them`);
    const item = (name: string, of: string): HTMLElement => el("li", {}, el("span", { class: "swatch", style: `background: var(--${of})` }), name);
    const parts = data.timed ? [item("computation before calls", "computation"), item("in MPI", "mpi")] : [item("calls", "mpi")];
    this.root.append(el("ul", { class: "legend" }, ...parts, item("×n: a loop of n turns", "empty")), this.canvas, this.said);
    if (!options.small) this.root.append(this.about);
    this.listen();
  }

  /** All of it; of many rows as many as have room for their loops. */
  get whole(): Part {
    const rows = Math.max(1, Math.floor((this.options.height() - TOP) / FIRST));
    return { from: 0, to: this.wide, first: 0, last: this.options.small ? this.rows.length : Math.min(rows, this.rows.length) };
  }

  show({ from, to, first, last }: Part): void {
    const long = Math.min(Math.max(to - from, this.wide / 1e9), this.wide);
    const high = Math.min(Math.max(last - first, 1), this.rows.length);
    const [left, top] = [Math.min(Math.max(from, 0), this.wide - long), Math.min(Math.max(first, 0), this.rows.length - high)];
    this.seen = { from: left, to: left + long, first: top, last: top + high };
    this.draw();
    this.options.changed?.(this.seen);
  }

  /** Shows the next or last loop of the uppermost row that is seen, from the first on. */
  loop(by: 1 | -1): void {
    const loops = this.rows[Math.floor(this.seen.first)]?.boxes.filter((box) => box.loop) ?? [];
    const at = this.gone ? loops.indexOf(this.gone) : -1;
    this.go(loops[(at < 0 && by < 0 ? loops.length - 1 : at + by + loops.length) % loops.length]);
  }

  private go(box: Box | undefined): void {
    if (!box) return;
    this.gone = box;
    const beside = box.wide / 50;
    this.show({ ...this.seen, from: box.begin - beside, to: box.begin + box.wide + beside });
    this.about.textContent = this.tell(box);
  }

  /** Where a row's loops are, and where its calls, which stand below all loops: heights in CSS pixels. */
  private place(row: number, height: number): { top: number; calls: number; bottom: number; band: number } {
    const each = (height - TOP) / (this.seen.last - this.seen.first);
    const [top, inner] = [TOP + (row - this.seen.first) * each, each - Math.min(4, each / 8)];
    const { depth } = this.rows[row];
    const band = each < ROOMY || depth === 0 ? 0 : Math.min(BAND, (inner * 0.6) / depth);
    return { top, calls: top + band * depth, bottom: top + inner, band };
  }

  protected paint(): void {
    const { width, height, scale } = fit(this.canvas, this.options.height());
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = colour("ground");
    context.fillRect(0, 0, width, height);
    const { first, last } = this.seen;
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, width - LEFT, height - TOP);
    context.clip();
    for (let row = Math.floor(first); row < Math.min(Math.ceil(last), this.rows.length); row++) this.paintRow(context, row, width, height);
    context.restore();
    this.label(context, width, height);
    const rows = Math.min(Math.ceil(last), this.rows.length) - Math.floor(first);
    const parts = [this.data.told, rows < this.rows.length && `${count(rows)} of ${count(this.rows.length)} rows are seen (<)`];
    this.said.textContent = parts.filter(Boolean).join(" · ");
  }

  private paintRow(context: CanvasRenderingContext2D, row: number, width: number, height: number): void {
    const { from, to } = this.seen;
    const { top, calls, bottom, band } = this.place(row, height);
    const per = (width - LEFT) / (to - from);
    context.textBaseline = "middle";
    context.font = "12px system-ui, sans-serif";
    for (const box of this.rows[row].boxes) {
      const [a, wide] = [LEFT + (box.begin - from) * per, box.wide * per];
      if (a + wide < LEFT || a > width) continue;
      if (box.loop) {
        if (band === 0) continue;
        const y = top + box.depth * band;
        context.fillStyle = colour(box.depth % 2 === 0 ? "empty" : "raised");
        context.fillRect(a, y, wide, bottom - y);
        context.strokeStyle = colour("rule");
        if (wide > 3) context.strokeRect(a + 0.5, y + 0.5, wide - 1, bottom - y - 1);
        this.write(context, times(box.turns), [a, a + wide, width], [y, y + band], "ink");
        continue;
      }
      const middle = this.data.timed ? a + box.computation * per : a;
      context.fillStyle = colour("computation");
      context.fillRect(a, calls, middle - a, bottom - calls);
      context.fillStyle = colour("mpi");
      context.fillRect(middle, calls, a + wide - middle, bottom - calls);
      // A name stands in the larger part.
      const before = middle - a > wide / 2;
      const name = box.turns > 1 && box.runs !== null ? `${box.what} ${times(box.turns)}` : box.what;
      this.write(context, name, before ? [a, middle, width] : [middle, a + wide, width], [calls, bottom], before ? "ink" : "on-call");
      if (wide < 4) continue;
      context.fillStyle = colour("ground");
      context.fillRect(a, calls, 1, bottom - calls);
    }
  }

  private write(context: CanvasRenderingContext2D, text: string, [from, to, width]: [number, number, number], [top, bottom]: [number, number], ink: string): void {
    const [a, b] = [Math.max(from, LEFT), Math.min(to, width)];
    if (b - a < 24 || bottom - top < 10) return;
    context.save();
    context.beginPath();
    context.rect(a + 2, top, b - a - 4, bottom - top);
    context.clip();
    context.fillStyle = colour(ink);
    context.fillText(text, a + 4, (top + bottom) / 2);
    context.restore();
  }

  /** Ranks on the left, and the ends of what is seen above. */
  private label(context: CanvasRenderingContext2D, width: number, height: number): void {
    const { from, to, first, last } = this.seen;
    const each = (height - TOP) / (last - first);
    const skip = Math.max(1, Math.ceil(15 / each));
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = colour("ink");
    context.textAlign = "right";
    context.fillText("ranks", LEFT - 6, TOP / 2);
    for (let row = Math.ceil(first / skip) * skip; row < last && row < this.rows.length; row += skip) {
      const at = TOP + (row - first + 0.5) * each;
      let text = this.rows[row].ranks;
      while (text.length > 2 && context.measureText(text).width > LEFT - 10) text = `${text.slice(0, text.endsWith("…") ? -2 : -1)}…`;
      if (at > TOP && at < height) context.fillText(text, LEFT - 6, at);
    }
    const amount = (n: number): string => (this.data.timed ? duration(Math.round(n)) : `${count(Math.round(n))} calls`);
    context.fillText(amount(to), width - 2, TOP / 2);
    context.textAlign = "left";
    context.fillText(amount(from), LEFT + 2, TOP / 2);
  }

  /** What a box is, in words. */
  private tell(box: Box): string {
    const row = this.rows[box.row];
    const whose = `${row.thread > 0 ? `thread ${row.thread} of ` : ""}${/^\d+$/.test(row.ranks) ? "rank" : "ranks"} ${row.ranks}`;
    const often = box.runs === null ? `${count(box.calls)} calls` : box.loop ? `${times(box.turns)}, ${count(box.calls)} calls in all` : `${times(box.turns)} each time, ${count(box.runs)} in all`;
    const amounts = this.data.timed ? ` · computation ${duration(box.computation)}, in MPI ${duration(box.mpi)}, ${percent(box.wide, row.wide)} of the row` : ` · ${percent(box.wide, row.wide)} of the row's calls`;
    return `${whose}: ${box.what} ${often}${amounts}${box.place ? ` · ${box.place}` : ""}`;
  }

  /** The box at a place in CSS pixels. */
  private at(x: number, y: number): Box | undefined {
    const { width, height } = this.canvas.getBoundingClientRect();
    const { from, to, first, last } = this.seen;
    const row = Math.floor(first + ((y - TOP) / (height - TOP)) * (last - first));
    if (x < LEFT || y < TOP || !this.rows[row]) return undefined;
    const time = from + ((x - LEFT) / (width - LEFT)) * (to - from);
    const { top, calls, band } = this.place(row, height);
    const inside = this.rows[row].boxes.filter((box) => box.begin <= time && time < box.begin + box.wide);
    if (y >= calls || band === 0) return inside[inside.length - 1];
    const depth = Math.floor((y - top) / band);
    return inside.filter((box) => box.depth <= depth).pop();
  }

  private listen(): void {
    const { canvas } = this;
    const inside = (e: MouseEvent): { x: number; y: number } => {
      const box = canvas.getBoundingClientRect();
      return { x: e.clientX - box.left, y: e.clientY - box.top };
    };
    if (this.options.small) {
      canvas.addEventListener("click", () => this.options.pressed?.());
      canvas.addEventListener("keydown", (e) => e.key === "Enter" && this.options.pressed?.());
      return;
    }
    canvas.addEventListener(
      "wheel",
      (e) => {
        const { width, height } = canvas.getBoundingClientRect();
        const { x, y } = inside(e);
        this.wheel(e, (x - LEFT) / (width - LEFT), (y - TOP) / (height - TOP));
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (e) => {
      canvas.setPointerCapture(e.pointerId);
      this.pointer = inside(e);
    });
    canvas.addEventListener("pointermove", (e) => {
      const at = inside(e);
      const { width, height } = canvas.getBoundingClientRect();
      if (this.pointer) this.pan((this.pointer.x - at.x) / (width - LEFT), (this.pointer.y - at.y) / (height - TOP));
      const box = this.pointer ? undefined : this.at(at.x, at.y);
      if (this.pointer) this.pointer = at;
      if (box) this.about.textContent = this.tell(box);
    });
    for (const end of ["pointerup", "pointercancel"] as const) canvas.addEventListener(end, () => (this.pointer = undefined));
    canvas.addEventListener("dblclick", (e) => {
      const { x, y } = inside(e);
      this.go(this.at(x, y));
    });
    canvas.addEventListener("keydown", (e) => this.key(e));
  }

  protected get keys(): Record<string, () => void> {
    return {
      ...super.keys,
      Home: () => this.show(this.whole),
      i: () => this.loop(1),
      I: () => this.loop(-1),
    };
  }
}

/** The buttons over it. */
export function logicalControls(view: LogicalView): HTMLElement {
  const press = (text: string, label: string, does: () => void): HTMLButtonElement => button(text, does, { title: label, "aria-label": label });
  const many = view.rows.length > 1;
  return el(
    "div",
    { class: "tools" },
    press("all", "show all (Home)", () => view.show(view.whole)),
    press("+", "less of the program (+)", () => view.zoom(0.5)),
    press("−", "more of the program (-)", () => view.zoom(2)),
    press("◀", "earlier (left arrow)", () => view.pan(-0.5)),
    press("▶", "later (right arrow)", () => view.pan(0.5)),
    many && press("fewer rows", "fewer rows (>)", () => view.fewer(0.5)),
    many && press("more rows", "more rows (<)", () => view.fewer(2)),
    view.rows.some((row) => row.depth > 0) && press("loop", "show the next loop (i), the one before (Shift and i)", () => view.loop(1)),
  );
}
