// Ranks on the grid that their partners are in, or nearly a square, each with a colour for how long it computes or waits.

import { Report, column } from "./data";
import { colour, el, fit, mix, pixel } from "./dom";
import { duration } from "./format";

const QUANTITIES: [string, string][] = [
  ["computation_ns", "computation"],
  ["mpi_ns", "in MPI"],
  ["wait_ns", "waiting"],
];

export class GridView {
  readonly root = el("div", { class: "grid" });
  private readonly canvas = el("canvas", { role: "img", "aria-label": "ranks on their grid" });
  private readonly said = el("p", { class: "about" }, "Point at a rank.");
  private readonly choice = el("select", { "aria-label": "what colours tell" });
  private readonly scale = el("p", { class: "note" });
  private readonly ranks: number[];
  private side = 1;

  constructor(private readonly report: Report) {
    this.ranks = (column(report.ranks, "rank") ?? []).map(Number);
    for (const [key, name] of QUANTITIES) {
      if ((column(report.ranks, key) ?? []).some((v) => v !== null)) this.choice.append(el("option", { value: key }, name));
    }
    this.choice.addEventListener("change", () => this.draw());
    this.root.append(el("div", { class: "tools" }, this.choice), this.scale, this.canvas, this.said);
    this.canvas.addEventListener("pointermove", (e) => {
      const box = this.canvas.getBoundingClientRect();
      const [x, y] = [Math.floor((e.clientX - box.left) / this.side), Math.floor((e.clientY - box.top) / this.side)];
      const at = y * report.grid_width + x;
      if (x < report.grid_width && at < this.ranks.length) {
        this.said.textContent = `rank ${this.ranks[at]} (row ${y}, column ${x}): ${this.name()} ${duration(this.values()[at])}`;
      }
    });
  }

  /** Whether there is a grid to show: single ranks, more than one row. */
  static fits(report: Report): boolean {
    const ranks = column(report.ranks, "rank") ?? [];
    return ranks.length > report.grid_width && report.grid_width > 1;
  }

  private name(): string {
    return QUANTITIES.find(([key]) => key === this.choice.value)?.[1] ?? "";
  }

  private values(): number[] {
    return (column(this.report.ranks, this.choice.value) ?? []).map((v) => (typeof v === "number" ? v : 0));
  }

  draw(): void {
    const [across, values] = [this.report.grid_width, this.values()];
    const down = Math.ceil(values.length / across);
    const room = Math.max(200, this.root.clientWidth);
    this.side = Math.max(1, Math.min(28, Math.floor(Math.min(room / across, 520 / down)) || 1));
    const { scale } = fit(this.canvas, down * this.side);
    const context = this.canvas.getContext("2d");
    if (!context) return;
    const [least, most] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, 0]);
    const [low, high] = [pixel(colour("heat-low")), pixel(colour("heat-high"))];
    const image = new ImageData(across, down);
    const pixels = new Uint32Array(image.data.buffer);
    values.forEach((v, i) => (pixels[i] = mix(low, high, most > least ? (v - least) / (most - least) : 0)));
    const small = el("canvas", { width: String(across), height: String(down) });
    small.getContext("2d")?.putImageData(image, 0, 0);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = colour("ground");
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, across * this.side, down * this.side);
    const size = `${across} ranks in a row; ${this.name()} from ${duration(least)} `;
    this.scale.replaceChildren(size, el("span", { class: "scale" }), ` to ${duration(most)}`);
  }
}
