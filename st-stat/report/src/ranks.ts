// Ranks, or groups of them: computation, MPI and waits as bars, and the table.

import { Table, column } from "./data";
import { colour, el, fit } from "./dom";
import { count, duration } from "./format";

const HEIGHT = 220;
const LEFT = 70;
const BOTTOM = 20;

/** What a bar consists of, from below, ns of a rank in the mean. */
interface Bar {
  name: string;
  parts: [number, number, number];
  most: number;
}

function bars(table: Table): Bar[] {
  const of = (key: string): number[] | undefined => column(table, key)?.map((v) => (typeof v === "number" ? v : 0));
  const [ranks, first, last] = [of("rank"), of("first_rank"), of("last_rank")];
  const [computation, mpi, wait, most] = [of("computation_ns"), of("mpi_ns"), of("wait_ns"), of("computation_most_ns")];
  return (ranks ?? first ?? []).map((rank, i) => {
    const n = ranks || !last ? 1 : last[i] - rank + 1;
    const waits = (wait?.[i] ?? 0) / n;
    const name = n === 1 ? `rank ${rank}` : `ranks ${rank} to ${last?.[i]}, mean`;
    const [c, m] = [(computation?.[i] ?? 0) / n, (mpi?.[i] ?? 0) / n];
    return { name, parts: [c, Math.max(0, m - waits), waits], most: most?.[i] ?? c };
  });
}

export class RankBars {
  readonly root = el("div", { class: "bars" });
  private readonly canvas = el("canvas", { role: "img", "aria-label": "computation, MPI and waits per rank" });
  private readonly said = el("p", { class: "about" }, "Point at a bar.");
  private readonly bars: Bar[];

  constructor(table: Table) {
    this.bars = bars(table);
    const item = (name: string, of: string): HTMLElement =>
      el("li", {}, el("span", { class: "swatch", style: `background: var(--${of})` }), name);
    this.root.append(
      el("ul", { class: "legend" }, item("computation", "computation"), item("MPI", "mpi"), item("waiting", "late-sender")),
      this.canvas,
      this.said,
    );
    this.canvas.addEventListener("pointermove", (e) => {
      const box = this.canvas.getBoundingClientRect();
      const bar = this.bars[Math.floor(((e.clientX - box.left - LEFT) / (box.width - LEFT)) * this.bars.length)];
      if (!bar) return;
      const [computation, mpi, wait] = bar.parts.map((ns) => duration(Math.round(ns)));
      this.said.textContent = `${bar.name}: computation ${computation}, MPI ${mpi}, waiting ${wait}`;
    });
  }

  draw(): void {
    const { width, height, scale } = fit(this.canvas, HEIGHT);
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = colour("ground");
    context.fillRect(0, 0, width, height);
    const high = Math.max(1, ...this.bars.map((b) => Math.max(b.most, b.parts[0] + b.parts[1] + b.parts[2])));
    const room = height - BOTTOM;
    const each = (width - LEFT) / Math.max(1, this.bars.length);
    const colours = ["computation", "mpi", "late-sender"].map(colour);
    // Bars narrower than a pixel are joined: the one with the longest computation is drawn.
    const shown = new Map<number, Bar>();
    this.bars.forEach((bar, i) => {
      const x = each < 1 ? Math.floor(i * each) : i * each;
      const before = shown.get(x);
      if (!before || before.parts[0] < bar.parts[0]) shown.set(x, bar);
    });
    for (const [x, bar] of shown) {
      let y = room;
      bar.parts.forEach((ns, part) => {
        const h = (ns / high) * (room - 8);
        context.fillStyle = colours[part];
        context.fillRect(LEFT + x, y - h, Math.max(1, each - (each > 3 ? 1 : 0)), h);
        y -= h;
      });
    }
    context.fillStyle = colour("ink");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    for (const part of [0, 0.5, 1]) {
      const y = room - part * (room - 8);
      context.fillRect(LEFT - 4, y, 4, 1);
      context.fillText(duration(Math.round(part * high)), LEFT - 8, Math.max(10, y + 4));
    }
    context.textAlign = "left";
    const skip = 2 ** Math.max(0, Math.ceil(Math.log2(60 / each)));
    for (let i = 0; i < this.bars.length; i += skip) {
      const text = this.bars[i].name.replace(/^ranks? /, "").split(" ")[0];
      if (LEFT + i * each + 40 < width) context.fillText(count(Number(text)), LEFT + i * each, height - 6);
    }
  }
}
