// The timeline: ranks as rows, time from left to right.

import { Timeline } from "./data";
import { button, colour, el, fit } from "./dom";
import { bytes, count, duration, moment, percent } from "./format";
import { COLOURS, Painter } from "./paint";
import { Scene, firstAfter, messagesIn, scene, waitsIn } from "./scene";
import { KINDS, PARTS, Sums, ranks, times } from "./sums";

/** Room for numbers of ranks, and for times, in CSS pixels. */
const LEFT = 58;
const TOP = 22;
/** Lines for messages at most. */
const LINES = 3000;

/** What is seen: which window (none: the whole run), times, and rows. */
export interface Seen {
  window: number | null;
  from: number;
  to: number;
  first: number;
  last: number;
}

export interface Options {
  height: () => number;
  /** A picture that is pressed, not moved. */
  small?: boolean;
  pressed?: (at: number) => void;
  changed?: (seen: Seen) => void;
}

/** Times at which lines are drawn: at most so many. */
function ticks(from: number, to: number, most: number): { step: number; at: number[] } {
  const rough = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? power * 10;
  const at: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) at.push(t);
  return { step, at };
}

export class TimelineView {
  readonly root = el("div", { class: "timeline" });
  readonly canvas = el("canvas", { tabindex: "0" });
  /** How long the last drawing took, ms. */
  took = 0;
  private readonly sums: Sums;
  private readonly ranks: number[];
  private readonly scenes: (Scene | undefined)[];
  private readonly said = el("p", { class: "note", role: "status" });
  private readonly about = el("div", { class: "about", "aria-live": "polite" }, "Point at a call or a rank.");
  private seen: Seen;
  private waiting = false;
  private pointers = new Map<number, { x: number; y: number }>();
  private moved = false;

  constructor(
    readonly data: Timeline,
    private readonly options: Options,
  ) {
    this.sums = new Sums(data.levels);
    this.ranks = ranks(data.levels);
    this.scenes = data.windows.map(() => undefined);
    this.seen = this.whole(null);
    const what = `timeline of ${this.ranks.length} ranks over ${duration(data.run_ns)}`;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", what);
    this.root.append(this.legend(), this.canvas, this.said);
    if (!options.small) this.root.append(this.about);
    this.listen();
  }

  /** All of the run, or of a window. */
  whole(window: number | null): Seen {
    const of = window === null ? null : this.data.windows[window];
    const rows = window === null ? this.ranks.length : this.scene(window).ranks.length;
    return { window, from: of?.from_ns ?? 0, to: of?.to_ns ?? this.data.run_ns, first: 0, last: rows };
  }

  get view(): Seen {
    return this.seen;
  }

  /** Shows what is asked for, as far as it is there. */
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

  zoom(by: number, around = 0.5): void {
    const { from, to } = this.seen;
    const at = from + (to - from) * around;
    this.show({ ...this.seen, from: at - (at - from) * by, to: at + (to - at) * by });
  }

  rows(by: number, around = 0.5): void {
    const { first, last } = this.seen;
    const at = first + (last - first) * around;
    this.show({ ...this.seen, first: at - (at - first) * by, last: at + (last - at) * by });
  }

  pan(part: number, rows = 0): void {
    const { from, to, first, last } = this.seen;
    const [t, r] = [(to - from) * part, (last - first) * rows];
    this.show({ ...this.seen, from: from + t, to: to + t, first: first + r, last: last + r });
  }

  /** Draws in the next frame. */
  draw(): void {
    // A printer does not wait for the next frame.
    if (document.documentElement.classList.contains("printing")) return this.paint();
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      if (this.canvas.isConnected && this.canvas.offsetParent !== null) this.paint();
    });
  }

  private scene(window: number): Scene {
    return (this.scenes[window] ??= scene(this.data.windows[window]));
  }

  /** The single calls that cover what is seen, if they are there and a pixel is less than a column. */
  private exact(width: number): Scene | null {
    const { window, from, to } = this.seen;
    if (window !== null) return this.scene(window);
    const all = this.data.windows.findIndex((w) => w.whole);
    return all >= 0 && (to - from) / width < this.data.levels.column_ns ? this.scene(all) : null;
  }

  private get rowRanks(): number[] {
    return this.seen.window === null ? this.ranks : this.scene(this.seen.window).ranks;
  }

  paint(): void {
    const began = performance.now();
    const { width, height, scale } = fit(this.canvas, this.options.height());
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colour("ground");
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const [w, h] = [Math.max(1, Math.round((width - LEFT) * scale)), Math.max(1, Math.round((height - TOP) * scale))];
    const painter = new Painter(w, h);
    const exact = this.exact(w);
    if (exact) this.paintCalls(painter, exact);
    else this.paintSums(painter);
    context.putImageData(painter.image, Math.round(LEFT * scale), Math.round(TOP * scale));
    context.setTransform(scale, 0, 0, scale, 0, 0);
    this.paintFrame(context, width, height);
    const lines = exact ? this.paintDetails(context, exact, width, height) : 0;
    this.say(exact, lines);
    this.took = performance.now() - began;
  }

  private paintSums(painter: Painter): void {
    const { from, to, first, last } = this.seen;
    const { group, rows } = this.data.levels;
    const pixel = (to - from) / painter.width;
    const at = times(this.data.levels, from, pixel, painter.width);
    const line = (row: number): number => Math.round(((row * group - first) / (last - first)) * painter.height);
    const end = Math.min(rows, Math.ceil(last / group));
    for (let row = Math.max(0, Math.floor(first / group)); row < end; ) {
      // Rows that share a line of pixels are added up.
      let next = row + 1;
      while (next < end && line(next) <= line(row)) next++;
      painter.clear();
      for (let of = row; of < next; of++) {
        this.sums.add(of, at, painter.sums);
        this.sums.longest(of, from, pixel, painter.most);
      }
      const bottom = next >= rows ? ((this.ranks.length - first) / (last - first)) * painter.height : line(next);
      painter.row(line(row), Math.max(Math.round(bottom), line(row) + 1), at.column);
      row = next;
    }
  }

  private paintCalls(painter: Painter, of: Scene): void {
    const { from, to, first, last } = this.seen;
    const line = (row: number): number => Math.round(((row - first) / (last - first)) * painter.height);
    for (const track of of.tracks) {
      const [top, bottom] = track.row;
      if (bottom <= first || top >= last) continue;
      painter.clear();
      const add = (part: number, a: number, b: number): void => {
        const scale = painter.width / (to - from);
        const [x0, x1] = [Math.max(0, (a - from) * scale), Math.min(painter.width, (b - from) * scale)];
        if (x1 <= x0) return;
        const sums = painter.sums[part];
        let x = Math.floor(x0);
        if (x1 <= x + 1) {
          sums[x] += x1 - x0;
          return;
        }
        sums[x] += x + 1 - x0;
        for (x++; x + 1 <= x1; x++) sums[x] += 1;
        if (x < painter.width) sums[x] += x1 - x;
      };
      let before = Math.max(track.begin, from);
      for (let i = firstAfter(track, from); i < track.enter.length && track.enter[i] < to; i++) {
        add(0, before, track.enter[i]);
        add(1, track.enter[i], track.exit[i]);
        before = track.exit[i];
      }
      const more = firstAfter(track, to) < track.enter.length;
      if (more || (of.to < this.data.run_ns && to >= of.to)) add(0, before, Math.min(to, of.to));
      const waits = waitsIn(track, from, to);
      for (const wait of waits) add(2 + wait.kind, wait.enter, wait.until);
      if (waits.length > 0) this.takeWaits(painter);
      painter.row(line(top), Math.max(line(bottom), line(top) + 1));
    }
  }

  /** Waits are in calls: what they take is not MPI's own. */
  private takeWaits(painter: Painter): void {
    const own = painter.sums[1];
    for (let x = 0; x < painter.width; x++) {
      let waits = 0;
      for (let part = 2; part < PARTS.length; part++) waits += painter.sums[part][x];
      own[x] = Math.max(0, own[x] - waits);
    }
  }

  /** Times above, ranks on the left, windows and findings. */
  private paintFrame(context: CanvasRenderingContext2D, width: number, height: number): void {
    const { from, to, first, last, window } = this.seen;
    const x = (t: number): number => LEFT + ((t - from) / (to - from)) * (width - LEFT);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const origin = this.data.origin_ns;
    const { step, at } = ticks(from + origin, to + origin, (width - LEFT) / 110);
    context.fillStyle = colour("ink");
    context.strokeStyle = colour("rule");
    for (const t of at) {
      const where = Math.round(x(t - origin)) + 0.5;
      context.beginPath();
      context.moveTo(where, TOP - 5);
      context.lineTo(where, height);
      context.globalAlpha = 0.35;
      context.stroke();
      context.globalAlpha = 1;
      const text = moment(t, step);
      if (where + context.measureText(text).width + 4 < width) context.fillText(text, where + 3, TOP / 2);
    }
    const all = this.rowRanks;
    const each = ((height - TOP) / (last - first)) * (window === null ? this.data.levels.group : 1);
    const unit = window === null ? this.data.levels.group : 1;
    const skip = 2 ** Math.max(0, Math.ceil(Math.log2(15 / each))) * unit;
    context.textAlign = "right";
    for (let row = Math.ceil(first / skip) * skip; row < last && row < all.length; row += skip) {
      const y = TOP + ((row - first + Math.min(unit, all.length - row) / 2) / (last - first)) * (height - TOP);
      if (y > TOP && y < height) context.fillText(count(all[Math.floor(row)]), LEFT - 6, y);
    }
    context.fillText("rank", LEFT - 6, TOP / 2);
    context.textAlign = "left";
    if (window === null) this.paintWindows(context, x, height);
  }

  private paintWindows(context: CanvasRenderingContext2D, x: (t: number) => number, height: number): void {
    context.strokeStyle = colour("ink");
    for (const window of this.data.windows) {
      if (window.whole) continue;
      const [a, b] = [x(window.from_ns), Math.max(x(window.from_ns) + 2, x(window.to_ns))];
      if (b < LEFT) continue;
      context.strokeRect(Math.max(LEFT, a) + 0.5, TOP - 3.5, b - Math.max(LEFT, a), 3);
    }
    context.fillStyle = colour("ink");
    for (const spot of this.data.spots) {
      const at = x((spot.from_ns + spot.to_ns) / 2);
      if (at < LEFT) continue;
      context.beginPath();
      context.moveTo(at - 5, TOP - 9);
      context.lineTo(at + 5, TOP - 9);
      context.lineTo(at, TOP - 1);
      context.fill();
      if (this.options.small) continue;
      const y = TOP + ((this.ranks.indexOf(spot.rank) + 0.5 - this.seen.first) / (this.seen.last - this.seen.first)) * (height - TOP);
      context.beginPath();
      context.arc(at, y, 6, 0, 7);
      context.stroke();
    }
  }

  /** Names of calls, where they end, and messages. Returns how many messages there are to be seen, below 0 if they are too many. */
  private paintDetails(context: CanvasRenderingContext2D, of: Scene, width: number, height: number): number {
    const { from, to, first, last } = this.seen;
    const x = (t: number): number => LEFT + ((t - from) / (to - from)) * (width - LEFT);
    const y = (row: number): number => TOP + ((row - first) / (last - first)) * (height - TOP);
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, width - LEFT, height - TOP);
    context.clip();
    for (const track of of.tracks) {
      const [top, bottom] = track.row.map(y);
      if (bottom < TOP || top > height) continue;
      for (let i = firstAfter(track, from); i < track.enter.length && track.enter[i] < to; i++) {
        const [a, b] = [x(track.enter[i]), x(track.exit[i])];
        if (b - a < 4) continue;
        context.fillStyle = colour("ground");
        context.fillRect(a, top, 1, bottom - top);
        if (b - a > 60 && bottom - top > 13) this.label(context, track.place[i], [Math.max(a, LEFT), Math.min(b, width)], [top, bottom]);
      }
    }
    const middles = of.tracks.map((track) => {
      const [top, bottom] = track.row;
      return y((top + bottom) / 2);
    });
    const visible = messagesIn(of, from, to).filter((m) => {
      const [a, b] = [middles[m.from], middles[m.to]];
      return Math.max(a, b) > TOP && Math.min(a, b) < height;
    });
    if (visible.length <= LINES) {
      context.strokeStyle = colour("line");
      context.globalAlpha = visible.length > 500 ? 0.35 : 0.8;
      context.beginPath();
      for (const m of visible) {
        context.moveTo(x(m.sent), middles[m.from]);
        context.lineTo(x(m.received), middles[m.to]);
      }
      context.stroke();
    }
    context.restore();
    return visible.length <= LINES ? visible.length : -visible.length;
  }

  private label(context: CanvasRenderingContext2D, place: number, [a, b]: [number, number], [top, bottom]: [number, number]): void {
    const text = this.data.places[place]?.function ?? "";
    context.fillStyle = colour("on-call");
    context.save();
    context.beginPath();
    context.rect(a + 2, top, b - a - 4, bottom - top);
    context.clip();
    context.fillText(text, a + 4, (top + bottom) / 2);
    context.restore();
  }

  private say(exact: Scene | null, lines: number): void {
    const { from, to } = this.seen;
    const { group, column_ns: column } = this.data.levels;
    const parts = [`${duration(to - from)} from ${moment(from + this.data.origin_ns, (to - from) / 1000)}`];
    if (exact) {
      parts.push("single calls");
      if (lines < 0) parts.push(`${count(-lines)} messages: zoom in to see them as lines`);
      else if (lines > 0) parts.push(`${count(lines)} messages as lines`);
      if (exact.more > 0) parts.push(`${count(exact.more)} later messages are not on this page`);
    } else {
      const each = group > 1 ? `${count(group)} ranks` : "rank";
      const all = this.data.windows.some((w) => w.whole);
      parts.push(`sums per ${each} and ${duration(column)}`);
      if (all) parts.push("zoom in for single calls");
      else if (this.data.windows.length > 0) parts.push("single calls are in the windows marked above");
    }
    this.said.textContent = parts.join(" · ");
  }

  private legend(): HTMLElement {
    const item = (name: string, i: number): HTMLElement =>
      el("li", {}, el("span", { class: "swatch", style: `background: var(--${COLOURS[i]})` }), i >= 2 ? `wait: ${name}` : name);
    const used = PARTS.map((_, i) => i < 2 || this.data.levels.waits[i - 2].length > 0);
    return el("ul", { class: "legend" }, ...PARTS.map((name, i) => (used[i] ? item(name, i) : null)));
  }

  private listen(): void {
    const { canvas } = this;
    const inside = (e: MouseEvent): { x: number; y: number } => {
      const box = canvas.getBoundingClientRect();
      return { x: (e.clientX - box.left - LEFT) / (box.width - LEFT), y: (e.clientY - box.top - TOP) / (box.height - TOP) };
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
        e.preventDefault();
        const { x, y } = inside(e);
        const by = Math.exp(Math.max(-200, Math.min(200, e.deltaY)) / 400);
        if (e.shiftKey) this.pan((e.deltaY || e.deltaX) / 800);
        else if (e.ctrlKey || e.altKey) this.rows(by, y);
        else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan(e.deltaX / 800);
        else this.zoom(by, Math.max(0, x));
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
        this.tell(at.x, at.y);
        return;
      }
      this.drag(e.pointerId, before, at);
      this.pointers.set(e.pointerId, at);
    });
    const up = (e: PointerEvent): void => {
      const at = inside(e);
      this.pointers.delete(e.pointerId);
      if (!this.moved) this.tell(at.x, at.y);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", (e) => this.pointers.delete(e.pointerId));
    canvas.addEventListener("dblclick", (e) => this.zoom(0.4, inside(e).x));
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

  private key(e: KeyboardEvent): void {
    const does: Record<string, () => void> = {
      ArrowLeft: () => this.pan(-0.1),
      ArrowRight: () => this.pan(0.1),
      ArrowUp: () => this.pan(0, -0.1),
      ArrowDown: () => this.pan(0, 0.1),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      ">": () => this.rows(0.5),
      "<": () => this.rows(2),
      Home: () => this.show(this.whole(this.seen.window)),
    };
    if (e.ctrlKey || e.metaKey || e.altKey || !does[e.key]) return;
    e.preventDefault();
    does[e.key]();
  }

  /** Says what is at a point, in parts of what is seen. */
  private tell(px: number, py: number): void {
    if (px < 0 || px > 1 || py < 0 || py > 1) return;
    const { from, to, first, last } = this.seen;
    const [t, row] = [from + px * (to - from), first + py * (last - first)];
    const exact = this.exact(this.canvas.width);
    this.about.textContent = exact ? this.call(exact, t, row) : this.cell(t, row);
  }

  private call(of: Scene, t: number, row: number): string {
    const track = of.tracks.find((one) => {
      const [top, bottom] = one.row;
      return row >= top && row < bottom;
    });
    if (!track) return "";
    const at = (time: number): string => moment(time + this.data.origin_ns, 1);
    const who = `rank ${track.rank}${of.tracks.some((one) => one.rank === track.rank && one !== track) ? `, thread ${track.thread}` : ""}`;
    const i = firstAfter(track, t);
    if (i >= track.enter.length || track.enter[i] > t) {
      const [a, b] = [i > 0 ? track.exit[i - 1] : track.begin, i < track.enter.length ? track.enter[i] : t];
      return t < track.begin ? "" : `${who}: computation, ${duration(b - a)} from ${at(a)}`;
    }
    const place = this.data.places[track.place[i]];
    const where = place?.site === null || !place ? "" : ` (site ${place.site}, ${place.place})`;
    const wait = waitsIn(track, track.enter[i], track.exit[i])[0];
    const waits = wait ? `; waits ${duration(wait.until - wait.enter)} of it for rank ${wait.for} (${KINDS[wait.kind]})` : "";
    const enter = track.enter[i];
    const first = of.tracks.findIndex((one) => one.rank === track.rank);
    const got = of.messages.filter((m) => of.tracks[m.to].rank === of.tracks[first].rank && m.received === track.exit[i]);
    const from = got.slice(0, 4).map((m) => `${m.bytes >= 0 ? bytes(m.bytes) : "?"} from rank ${of.tracks[m.from].rank}`);
    const messages = got.length > 0 ? `; receives ${from.join(", ")}${got.length > 4 ? ` and ${got.length - 4} more` : ""}` : "";
    return `${who}: ${place?.function ?? "?"}${where}, ${duration(track.exit[i] - enter)} from ${at(enter)}${waits}${messages}`;
  }

  private cell(t: number, row: number): string {
    const { group, rows, columns, column_ns: column } = this.data.levels;
    const of = Math.floor(row / group);
    if (of >= rows || of < 0) return "";
    // As wide as a pixel, but whole columns.
    const pixel = (this.seen.to - this.seen.from) / Math.max(1, this.canvas.width);
    const wide = Math.max(1, Math.round(pixel / column));
    const begin = Math.min(columns - 1, Math.floor(t / column / wide) * wide);
    const end = Math.min(columns, begin + wide);
    const sums = PARTS.map(() => new Float64Array(1));
    this.sums.add(of, times(this.data.levels, begin * column, (end - begin) * column, 1), sums);
    const all = sums.reduce((sum, [ns]) => sum + ns, 0);
    const parts = PARTS.map((name, i) => (sums[i][0] > 0 ? `${i >= 2 ? "wait: " : ""}${name} ${duration(sums[i][0])} (${percent(sums[i][0], all)})` : ""));
    const most = new Float64Array(1);
    this.sums.longest(of, begin * column, column, most);
    const one = most[0] > 0 ? `; of ${duration(column)} there one rank waits up to ${percent(most[0], 1)}` : "";
    const [a, b] = [this.ranks[of * group], this.ranks[Math.min(this.ranks.length, (of + 1) * group) - 1]];
    const who = a === b ? `rank ${a}` : `ranks ${a} to ${b} together`;
    const from = moment(begin * column + this.data.origin_ns, column / 10);
    return `${who}, ${duration((end - begin) * column)} from ${from}: ${parts.filter((p) => p).join(", ") || "nothing"}${one}`;
  }
}

/** The buttons over a timeline. */
export function controls(view: TimelineView): HTMLElement {
  const windows = el("select", { "aria-label": "what is shown" }, el("option", { value: "" }, "whole run"));
  view.data.windows.forEach((w, i) => {
    if (w.whole) return;
    const text = `window ${i + 1}: ${duration(w.to_ns - w.from_ns)} from ${moment(w.from_ns + view.data.origin_ns, (w.to_ns - w.from_ns) / 100)}`;
    windows.append(el("option", { value: String(i) }, text));
  });
  windows.addEventListener("change", () => view.show(view.whole(windows.value === "" ? null : Number(windows.value))));
  const press = (text: string, label: string, does: () => void): HTMLButtonElement => button(text, does, { title: label, "aria-label": label });
  const bar = el(
    "div",
    { class: "tools" },
    windows.options.length > 1 && windows,
    press("all", "show all (Home)", () => view.show(view.whole(view.view.window))),
    press("+", "less time (+)", () => view.zoom(0.5)),
    press("−", "more time (-)", () => view.zoom(2)),
    press("◀", "earlier (left arrow)", () => view.pan(-0.5)),
    press("▶", "later (right arrow)", () => view.pan(0.5)),
    press("fewer ranks", "fewer ranks (>)", () => view.rows(0.5)),
    press("more ranks", "more ranks (<)", () => view.rows(2)),
  );
  bar.addEventListener("shown", () => (windows.value = view.view.window === null ? "" : String(view.view.window)));
  return bar;
}
