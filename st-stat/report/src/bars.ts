// Bars side by side, each of computation, MPI and waiting.

import { cleared, colour, el } from "./dom";
import { count, duration } from "./format";

const HEIGHT = 220;
const LEFT = 70;
const BOTTOM = 20;

/** A bar: what it consists of, from below, ns. */
export interface Bar {
  /** What stands below it. */
  number: number;
  parts: [number, number, number];
  /** The longest of what the bar is the mean of. */
  most: number;
  /** What it is, in words. */
  said: string;
}

export interface Options {
  /** What the bars are, for those who cannot see them. */
  name: string;
  /** What the longest is, if lines show it. */
  most?: string;
  /** Of bars narrower than a pixel the one of which this is largest is drawn. */
  by: (bar: Bar) => number;
  pressed?: (bar: number) => void;
}

export class Bars {
  readonly root = el("div", { class: "bars" });
  private readonly canvas: HTMLCanvasElement;
  private readonly said = el("p", { class: "about" }, "Point at a bar.");

  constructor(
    private readonly bars: Bar[],
    private readonly options: Options,
  ) {
    this.canvas = el("canvas", { role: "img", "aria-label": options.name });
    const item = (name: string, of: string): HTMLElement =>
      el("li", {}, el("span", { class: "swatch", style: `background: var(--${of})` }), name);
    const line = options.most ? el("li", {}, el("span", { class: "swatch line" }), options.most) : null;
    this.root.append(
      el("ul", { class: "legend" }, item("computation", "computation"), item("MPI", "mpi"), item("waiting", "late-sender"), line),
      this.canvas,
      this.said,
    );
    const at = (e: MouseEvent): number => {
      const box = this.canvas.getBoundingClientRect();
      return Math.floor(((e.clientX - box.left - LEFT) / (box.width - LEFT)) * this.bars.length);
    };
    this.canvas.addEventListener("pointermove", (e) => {
      const bar = this.bars[at(e)];
      if (bar) this.said.textContent = bar.said;
    });
    if (!options.pressed) return;
    this.canvas.style.cursor = "pointer";
    this.canvas.addEventListener("click", (e) => {
      if (this.bars[at(e)]) this.options.pressed?.(at(e));
    });
  }

  draw(): void {
    const on = cleared(this.canvas, HEIGHT);
    if (!on) return;
    const { context, width, height } = on;
    const high = this.bars.reduce((most, b) => Math.max(most, b.most, b.parts[0] + b.parts[1] + b.parts[2]), 1);
    const room = height - BOTTOM;
    const each = (width - LEFT) / Math.max(1, this.bars.length);
    const colours = ["computation", "mpi", "late-sender"].map(colour);
    const wide = Math.max(1, each - (each > 3 ? 1 : 0));
    // Of bars narrower than a pixel one is drawn.
    const shown = new Map<number, Bar>();
    this.bars.forEach((bar, i) => {
      const x = each < 1 ? Math.floor(i * each) : i * each;
      const before = shown.get(x);
      if (!before || this.options.by(before) < this.options.by(bar)) shown.set(x, bar);
    });
    for (const [x, bar] of shown) {
      let y = room;
      bar.parts.forEach((ns, part) => {
        const h = (ns / high) * (room - 8);
        context.fillStyle = colours[part];
        context.fillRect(LEFT + x, y - h, wide, h);
        y -= h;
      });
      if (!this.options.most) continue;
      context.fillStyle = colour("ink");
      context.fillRect(LEFT + x, room - (bar.most / high) * (room - 8) - 1, wide, 1.5);
    }
    this.axes(context, { width, height, high, each });
  }

  private axes(context: CanvasRenderingContext2D, of: { width: number; height: number; high: number; each: number }): void {
    const room = of.height - BOTTOM;
    context.fillStyle = colour("ink");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    for (const part of [0, 0.5, 1]) {
      const y = room - part * (room - 8);
      context.fillRect(LEFT - 4, y, 4, 1);
      context.fillText(duration(Math.round(part * of.high)), LEFT - 8, Math.max(10, y + 4));
    }
    context.textAlign = "left";
    const skip = 2 ** Math.max(0, Math.ceil(Math.log2(60 / of.each)));
    for (let i = 0; i < this.bars.length; i += skip) {
      const text = count(this.bars[i].number);
      if (LEFT + i * of.each + 40 < of.width) context.fillText(text, LEFT + i * of.each, of.height - 6);
    }
  }
}
