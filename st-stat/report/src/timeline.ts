// The timeline: ranks as rows, time from left to right.

import { Bands } from "./bands";
import { Band, Timeline } from "./data";
import { colour, el, fit } from "./dom";
import { paintCalls, paintSums } from "./fill";
import { count, duration, moment } from "./format";
import { Frame, LEFT, Lines, Seen, TOP, across, alone, axes, details, down as downTo, marks, over, rulerLines } from "./frame";
import { Moved } from "./moved";
import { COLOURS, Painter } from "./paint";
import { Path, path, pathLine, stayAt } from "./path";
import { By, ONE, Rows, allRows, rankRows } from "./rows";
import { Scene, scene } from "./scene";
import { PARTS } from "./sums";
import { call, cell } from "./tell";

export type { Seen };

/** Room for a rank that stands by itself above the others, in CSS pixels, and below them all. */
const ALONE = 15;
const BELOW = 4;

/** Pixels of a row from which on fewer ranks share one. */
const FINE = 1.5;

/** Pixels that a stay of the critical path on a rank needs, so that the rows below are seen. */
const DENSE = 8;

export interface Options {
  height: () => number;
  /** A picture that is pressed, not moved. */
  small?: boolean;
  pressed?: (at: number) => void;
  changed?: (seen: Seen) => void;
  /** Iterations and phases, to be drawn above the rows. */
  bands?: Band[];
}

export class TimelineView extends Moved<Seen> {
  readonly root = el("div", { class: "timeline" });
  private readonly all: Rows[];
  private shownRows: Rows;
  /** Rows of fewer ranks each, for who looks at few of them: made when that is first done. */
  private fine: Rows | undefined;
  /** Ranks at the ends of many, which have rows of their own. */
  private readonly extremes: Rows | null;
  private readonly path: Path;
  private readonly bands: Bands;
  /** Where rows begin, in CSS pixels. */
  private readonly top: number;
  /** Whether the critical path is drawn; if nothing is said, where it has so much room that rows are seen below it. */
  private pathAsked: boolean | undefined;
  private pathDrawn = false;
  /** One or two times that are measured between; of one, to where is pointed. */
  ruler: number[] = [];
  /** The time that is pointed at. */
  private pointed: number | undefined;
  private readonly scenes: (Scene | undefined)[];
  private readonly said = el("p", { class: "note", role: "status" });
  private readonly about = el("div", { class: "about", "aria-live": "polite" }, "Point at a call or a rank.");
  protected seen: Seen;
  private painter: Painter | undefined;
  private aloneIn: Painter | undefined;
  /** The iteration that was gone to last, and what was seen then. */
  private gone: { i: number; from: number; to: number } | undefined;
  private pointers = new Map<number, { x: number; y: number }>();
  private moved = false;

  constructor(
    readonly data: Timeline,
    private readonly options: Options,
  ) {
    super();
    this.all = allRows(data);
    this.shownRows = this.all[0];
    this.path = path(data);
    this.bands = new Bands(options.bands ?? [], data.origin_ns);
    this.extremes = data.extremes && rankRows(data.extremes);
    this.top = this.bands.height + this.alone + TOP;
    this.scenes = data.windows.map(() => undefined);
    this.seen = this.whole(null);
    const what = `timeline of ${this.shownRows.count} ranks over ${duration(data.run_ns)}`;
    this.canvas.setAttribute("aria-label", what);
    this.root.append(this.legend(), this.canvas, this.said);
    if (!options.small) this.root.append(this.about);
    this.listen();
    if (!options.small) this.prepare(0);
  }

  /** Makes windows ready to be drawn while there is nothing else to do, so that none of them holds up a frame. */
  private prepare(window: number): void {
    if (window >= this.data.windows.length) return;
    const make = (): void => {
      this.scene(window);
      this.prepare(window + 1);
    };
    // Safari has none.
    if (typeof requestIdleCallback === "undefined") setTimeout(make, 100);
    else requestIdleCallback(make);
  }

  /** All of the run, or of a window. */
  whole(window: number | null): Seen {
    const of = window === null ? null : this.data.windows[window];
    const rows = window === null ? this.shownRows.count : this.scene(window).ranks.length;
    return { window, from: of?.from_ns ?? 0, to: of?.to_ns ?? this.data.run_ns, first: 0, last: rows };
  }

  show(seen: Seen): void {
    const window = seen.window !== null && seen.window < this.data.windows.length ? seen.window : null;
    const whole = this.whole(window);
    const least = Math.min(100, whole.to - whole.from);
    const long = Math.min(Math.max(seen.to - seen.from, least), whole.to - whole.from);
    const from = Math.min(Math.max(seen.from, whole.from), whole.to - long);
    const high = Math.min(Math.max(seen.last - seen.first, 1), whole.last);
    const first = Math.min(Math.max(seen.first, 0), whole.last - high);
    this.seen = { window, from, to: from + long, first, last: first + high };
    this.draw();
    this.options.changed?.(this.seen);
  }

  private scene(window: number): Scene {
    return (this.scenes[window] ??= scene(this.data.windows[window]));
  }

  /** The single calls that cover what is seen, if they are there and a pixel is less than a column. */
  private exact(width: number): Scene | null {
    const { window, from, to } = this.seen;
    if (window !== null) return this.scene(window);
    const all = this.shownRows.by === "ranks" ? this.data.windows.findIndex((w) => w.whole) : -1;
    return all >= 0 && (to - from) / width < this.shownRows.levels.column_ns ? this.scene(all) : null;
  }

  /** How high the rows of single ranks above the others are. */
  private get alone(): number {
    return this.extremes ? this.extremes.count * ALONE + BELOW : 0;
  }

  /** Rows of the whole run as they are drawn: of few ranks where few are seen. */
  private get level(): Rows {
    const { data: { fine }, shownRows, seen } = this;
    if (!fine || shownRows.by !== "ranks") return shownRows;
    const high = ((this.painter?.height ?? 0) / (seen.last - seen.first)) * fine.group;
    return high >= FINE ? (this.fine ??= rankRows(fine)) : shownRows;
  }

  /** What rows are called now, and whose they are. */
  private get names(): Pick<Frame, "label" | "ranks" | "rowOf" | "count" | "group" | "of"> {
    const { window } = this.seen;
    const { label, ranks: listed, rowOf, count, levels, by } = this.level;
    if (window === null) return { label, ranks: listed, rowOf, count, group: levels.group, of: ONE[by] };
    const { ranks, rowOf: rows } = this.scene(window);
    return { label: (row) => String(ranks[Math.floor(row)]), ranks: () => "", rowOf: rows, count: ranks.length, group: 1, of: "rank" };
  }

  /** What rows may be, and what they are. */
  get choices(): By[] {
    return this.all.map((rows) => rows.by);
  }

  get by(): By {
    return this.shownRows.by;
  }

  /** Shows ranks, nodes or clusters as rows: all of them, at the time that is seen. */
  rowsBy(by: By): void {
    const rows = this.all.find((one) => one.by === by);
    if (!rows || rows === this.shownRows) return;
    this.shownRows = rows;
    const { from, to } = this.seen;
    this.show({ ...this.whole(null), from, to });
  }

  protected paint(): void {
    const { width, height, scale } = fit(this.canvas, this.options.height() + (this.options.small ? this.alone : 0));
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colour("ground");
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const [w, h] = [Math.max(1, Math.round((width - LEFT) * scale)), Math.max(1, Math.round((height - this.top) * scale))];
    // Made anew only where the size is another: a picture is some MB.
    if (this.painter?.width !== w || this.painter.height !== h) this.painter = new Painter(w, h);
    const painter = this.painter;
    painter.begin();
    const exact = this.exact(w);
    if (exact) paintCalls(painter, exact, this.seen, this.data.run_ns);
    else paintSums(painter, this.level, this.seen);
    context.putImageData(painter.image, Math.round(LEFT * scale), Math.round(this.top * scale));
    this.paintAlone(context, w, scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const frame: Frame = { context, width, height, top: this.top, seen: this.seen, data: this.data, ...this.names };
    axes(frame);
    this.bands.draw(frame);
    if (this.extremes) alone(frame, [this.bands.height, ALONE], this.extremes);
    if (this.seen.window === null) marks(frame, !this.options.small);
    const lines = exact ? details(frame, exact) : { messages: 0, meetings: 0 };
    const stays = this.pathAsked !== false && !this.options.small ? this.paintPath(frame) : 0;
    rulerLines(frame, this.measured);
    this.say(exact, lines, stays);
  }

  /** Draws the ranks that stand by themselves: their sums, whatever is below. */
  private paintAlone(context: CanvasRenderingContext2D, width: number, scale: number): void {
    const rows = this.extremes;
    if (!rows) return;
    const high = Math.max(1, Math.round(rows.count * ALONE * scale));
    if (this.aloneIn?.width !== width || this.aloneIn.height !== high) this.aloneIn = new Painter(width, high);
    this.aloneIn.begin();
    paintSums(this.aloneIn, rows, { ...this.seen, first: 0, last: rows.count });
    context.putImageData(this.aloneIn.image, Math.round(LEFT * scale), Math.round(this.bands.height * scale));
  }

  /** The rank that stands by itself at a height, in CSS pixels: its row. */
  private aloneAt(y: number): number | undefined {
    const row = Math.floor((y - this.bands.height) / ALONE);
    return this.extremes && row >= 0 && row < this.extremes.count ? row : undefined;
  }

  /** Shows the rows about a rank. */
  private showRank(row: number): void {
    const rank = this.extremes?.levels.ranks[row];
    this.rowsBy("ranks");
    const at = rank === undefined ? undefined : this.names.rowOf.get(rank);
    if (at !== undefined) this.show({ ...this.seen, first: at - 8, last: at + 9 });
  }

  /** The ends of the ruler, the earlier first, as far as they are there. */
  private get measured(): number[] {
    const ends = this.ruler.length === 1 && this.pointed !== undefined ? [...this.ruler, this.pointed] : [...this.ruler];
    return ends.sort((a, b) => a - b);
  }

  /** Sets the next end of the ruler where is pointed, or in the middle; takes it away, if both are there. */
  measure(): void {
    const { from, to } = this.seen;
    const at = this.pointed !== undefined && this.pointed >= from && this.pointed <= to ? this.pointed : (from + to) / 2;
    this.ruler = this.ruler.length === 2 ? [] : [...this.ruler, at];
    this.draw();
    this.options.changed?.(this.seen);
  }

  private paintPath(frame: Frame): number {
    const { from, to, first, last } = this.seen;
    const { rowOf: rows, group, count } = frame;
    const here = Math.min(stayAt(this.path, to) + 1, this.path.rank.length) - stayAt(this.path, from);
    const thin = here > frame.width / DENSE;
    this.pathDrawn = !thin || this.pathAsked === true;
    if (!this.pathDrawn) return -here;
    const down = downTo(frame);
    const row = (rank: number): number | undefined => {
      const at = rows.get(rank);
      if (at === undefined) return undefined;
      const begin = Math.floor(at / group) * group;
      return down(Math.min(Math.max((begin + Math.min(begin + group, count)) / 2, first), last));
    };
    const line = new Path2D();
    const stays = pathLine(line, this.path, [from, to], across(frame), row);
    over(frame, thin, line);
    return stays;
  }

  private say(exact: Scene | null, { messages, meetings }: Lines, stays: number): void {
    const { from, to } = this.seen;
    const { group, rows, count: ranks, column_ns: column } = this.level.levels;
    const parts = [`${duration(to - from)} from ${moment(from + this.data.origin_ns, (to - from) / 1000)}`];
    if (exact) {
      parts.push("single calls");
      if (messages < 0) parts.push(`${count(-messages)} messages: zoom in to see them as lines`);
      else if (messages > 0) parts.push(`${count(messages)} ${messages === 1 ? "message as a line" : "messages as lines"}`);
      if (meetings < 0) parts.push(`${count(-meetings)} collective operations with waits: zoom in to see them as lines`);
      else if (meetings === 1) parts.push("a collective operation with waits as a dashed line, with a dot on who comes last");
      else if (meetings > 0) parts.push(`${count(meetings)} collective operations with waits as dashed lines, with dots on who comes last`);
      if (exact.more > 0) parts.push(`${count(exact.more)} later messages are not on this page`);
    } else {
      const each = this.by === "ranks" && group > 1 ? `${count(group)} ranks` : ONE[this.by];
      const all = this.by === "ranks" && this.data.windows.some((w) => w.whole);
      parts.push(`sums per ${each} and ${duration(column)}`);
      if (this.by === "ranks" && group > 1) parts.push(`${count(ranks)} ranks share ${count(rows)} rows${this.data.fine && this.level !== this.fine ? ": fewer ranks (>) have more" : ""}`);
      if (all) parts.push("zoom in for single calls");
      else if (this.by !== "ranks") parts.push("rows of ranks have single calls");
      else if (this.data.windows.length > 0) parts.push("single calls are in the windows marked above");
    }
    const [a, b] = this.measured;
    if (b !== undefined) {
      const [begin, end] = [a, b].map((time) => moment(time + this.data.origin_ns, (to - from) / 1000));
      parts.push(`ruler: ${duration(Math.round(b - a))} from ${begin} to ${end}`);
    }
    if (stays < 0) parts.push(`the critical path goes from rank to rank ${count(-stays - 1)} times: zoom in, or press p, to see it`);
    if (stays > 1) parts.push(`the critical path goes from rank to rank ${stays === 2 ? "once" : `${count(stays - 1)} times`}`);
    if (this.data.path_more > 0) parts.push(`the critical path goes from rank to rank ${count(this.data.path_more)} times: too often for this page`);
    const text = parts.join(" · ");
    if (this.said.textContent !== text) this.said.textContent = text;
  }

  private legend(): HTMLElement {
    const item = (name: string, i: number): HTMLElement =>
      el("li", {}, el("span", { class: "swatch", style: `background: var(--${COLOURS[i]})` }), i >= 2 ? `wait: ${name}` : name);
    const used = PARTS.map((_, i) => i < 2 || this.data.levels.waits[i - 2].length > 0);
    const line = this.path.rank.length > 0 && !this.options.small;
    return el(
      "ul",
      { class: "legend" },
      ...PARTS.map((name, i) => (used[i] ? item(name, i) : null)),
      line && el("li", {}, el("span", { class: "swatch path" }), "critical path"),
      this.extremes && el("li", {}, "above the times: ranks that are waited for, compute or wait most, or compute least"),
      this.bands.count > 0 && el("li", {}, "iteration: 0.5 ", el("span", { class: "scale" }), " 1.5 of the median"),
      this.bands.anySlow && el("li", {}, el("span", { class: "swatch", style: "background: var(--low)" }), "slow iteration"),
    );
  }

  private listen(): void {
    const { canvas } = this;
    const inside = (e: MouseEvent): { x: number; y: number } => {
      const box = canvas.getBoundingClientRect();
      return { x: (e.clientX - box.left - LEFT) / (box.width - LEFT), y: (e.clientY - box.top - this.top) / (box.height - this.top) };
    };
    if (this.options.small) {
      canvas.addEventListener("click", (e) => this.options.pressed?.(inside(e).x * this.data.run_ns));
      canvas.addEventListener("keydown", (e) => {
        if (e.key === "Enter") this.options.pressed?.(this.data.run_ns / 2);
      });
      return;
    }
    canvas.addEventListener(
      "wheel",
      (e) => {
        const { x, y } = inside(e);
        this.wheel(e, x, y);
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (e) => {
      canvas.setPointerCapture(e.pointerId);
      this.pointers.set(e.pointerId, inside(e));
      this.moved = false;
    });
    canvas.addEventListener("pointermove", (e) => {
      const at = inside(e);
      const before = this.pointers.get(e.pointerId);
      if (!before) {
        this.tell(at);
        return;
      }
      this.drag(e.pointerId, before, at);
      this.pointers.set(e.pointerId, at);
    });
    const up = (e: PointerEvent): void => {
      const at = inside(e);
      this.pointers.delete(e.pointerId);
      if (!this.moved) this.tell(at);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", (e) => this.pointers.delete(e.pointerId));
    canvas.addEventListener("dblclick", (e) => {
      const at = inside(e);
      const [found, own] = [this.band(at), at.y < 0 ? this.aloneAt(this.above(at.y)) : undefined];
      if (own !== undefined) this.showRank(own);
      else if (found) this.go(found.of.begin_ns[found.i], found.of.end_ns[found.i]);
      else this.zoom(0.4, at.x);
    });
    canvas.addEventListener("keydown", (e) => this.key(e));
  }

  private drag(id: number, before: { x: number; y: number }, at: { x: number; y: number }): void {
    if (Math.abs(at.x - before.x) + Math.abs(at.y - before.y) > 0.002) this.moved = true;
    const other = [...this.pointers].find(([key]) => key !== id)?.[1];
    if (other) {
      const [was, is] = [Math.abs(before.x - other.x), Math.abs(at.x - other.x)];
      if (is > 0.01 && was > 0.01) this.zoom(was / is, (at.x + other.x) / 2);
      return;
    }
    this.pan(before.x - at.x, before.y - at.y);
  }

  /** Says what is at a point, in parts of what is seen. */
  private tell({ x, y }: { x: number; y: number }): void {
    if (x < 0 || x > 1 || y > 1) return;
    const { from, to, first, last } = this.seen;
    const own = y < 0 ? this.aloneAt(this.above(y)) : undefined;
    if (this.extremes && own !== undefined) {
      const time = from + x * (to - from);
      this.about.textContent = cell(this.data, this.extremes, [time, own, (to - from) / Math.max(1, this.canvas.width)]);
      return;
    }
    if (y < 0) {
      const told = this.bands.tell(this.above(y), from + x * (to - from));
      if (told) this.about.textContent = told;
      return;
    }
    const [time, row] = [from + x * (to - from), first + y * (last - first)];
    this.pointed = time;
    if (this.ruler.length === 1) this.draw();
    const exact = this.exact(this.canvas.width);
    const pixel = (to - from) / Math.max(1, this.canvas.width);
    const what = exact ? call(this.data, exact, time, row) : cell(this.data, this.level, [time, row, pixel]);
    const on = this.path.rank[stayAt(this.path, time)];
    this.about.textContent = what && on !== undefined ? `${what} · then the critical path is on rank ${on}` : what;
  }

  /** How far a part of the rows' height is from the top of the picture, in CSS pixels. */
  private above(y: number): number {
    return this.top + y * (this.canvas.clientHeight - this.top);
  }

  private band({ x, y }: { x: number; y: number }): { of: Band; i: number } | undefined {
    const { from, to } = this.seen;
    return x < 0 || y > 0 ? undefined : this.bands.at(this.above(y), from + x * (to - from));
  }

  /** Shows a time with a little before and after it. */
  go(from: number, to: number): void {
    const beside = (to - from) / 50;
    this.show({ ...this.seen, from: from - beside, to: to + beside });
  }

  /** How many iterations there are to go to. */
  get iterations(): number {
    return this.bands.count;
  }

  /** Shows the next or last iteration of the loop, or phase, that takes most: of one that is seen, else the one in the middle. */
  iteration(by: 1 | -1): void {
    const { from, to } = this.seen;
    const gone = this.gone?.from === from && this.gone.to === to ? this.gone.i : undefined;
    const { i, alone } = this.bands.here(this.seen);
    const next = gone !== undefined ? gone + by : alone ? i + by : i;
    const time = this.bands.time(next);
    if (!time) return;
    this.go(...time);
    this.gone = { i: next, from: this.seen.from, to: this.seen.to };
  }

  togglePath(): void {
    this.pathAsked = !(this.pathDrawn && this.pathAsked !== false);
    this.draw();
  }

  protected get keys(): Record<string, () => void> {
    return {
      ...super.keys,
      Home: () => this.show(this.whole(this.seen.window)),
      p: () => this.togglePath(),
      m: () => this.measure(),
      i: () => this.iteration(1),
      I: () => this.iteration(-1),
    };
  }
}
