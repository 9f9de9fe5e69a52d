// Who sends how much to whom: a square of groups of ranks.

import { Matrix } from "./data";
import { colour, el, fit, mix, pixel } from "./dom";
import { bytes, count } from "./format";

const LEFT = 58;
const TOP = 24;

/** What is said where the square would be empty, with the bytes of all calls if they are known. */
export function noMessages(sent: number | undefined): HTMLElement {
  const others = sent ? ` ${bytes(sent)} are sent in collective operations and to files.` : "";
  return el("p", {}, `There are no messages between pairs of ranks.${others}`);
}

export class MatrixView {
  readonly root = el("div", { class: "matrix" });
  private readonly canvas = el("canvas", { role: "img", "aria-label": "bytes from rank (row) to rank (column)" });
  private readonly said = el("p", { class: "about" }, "Point at a cell.");
  private readonly cells = new Map<number, number>();
  private readonly n: number;
  private side = 0;

  constructor(private readonly data: Matrix) {
    this.n = Math.ceil(data.ranks / data.group);
    data.from.forEach((from, i) => this.cells.set(from * this.n + data.to[i], i));
    const each = data.group > 1 ? `${count(data.group)} ranks` : "one rank";
    const most = data.bytes.reduce((a, b) => Math.max(a, b), 0);
    const scale = el("span", { class: "scale" });
    const what = `rows send, columns receive; a cell is ${each} to ${each}; from 0 B `;
    this.root.append(el("p", { class: "note" }, what, scale, ` to ${bytes(most)}, by the logarithm`), this.canvas, this.said);
    this.canvas.addEventListener("pointermove", (e) => {
      const box = this.canvas.getBoundingClientRect();
      this.tell(e.clientX - box.left - LEFT, e.clientY - box.top - TOP);
    });
  }

  private name(group: number): string {
    const [a, b] = [group * this.data.group, Math.min(this.data.ranks, (group + 1) * this.data.group) - 1];
    return a === b ? `rank ${a}` : `ranks ${a} to ${b}`;
  }

  private tell(x: number, y: number): void {
    const [to, from] = [Math.floor((x / this.side) * this.n), Math.floor((y / this.side) * this.n)];
    if (x < 0 || y < 0 || to >= this.n || from >= this.n) return;
    const i = this.cells.get(from * this.n + to);
    const what = i === undefined ? "nothing" : `${bytes(this.data.bytes[i])} in ${count(this.data.messages[i])} messages`;
    this.said.textContent = `${this.name(from)} to ${this.name(to)}: ${what}`;
  }

  draw(): void {
    const room = Math.min(this.root.clientWidth, 560, Math.max(280, window.innerHeight - 260));
    const { width, scale } = fit(this.canvas, room);
    this.side = Math.max(40, Math.min(width - LEFT, room - TOP));
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colour("ground");
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const image = new ImageData(this.n, this.n);
    const pixels = new Uint32Array(image.data.buffer);
    const [none, low, high] = ["empty", "heat-low", "heat-high"].map((c) => pixel(colour(c)));
    pixels.fill(none);
    const most = Math.log(1 + this.data.bytes.reduce((a, b) => Math.max(a, b), 0));
    this.data.bytes.forEach((n, i) => {
      pixels[this.data.from[i] * this.n + this.data.to[i]] = mix(low, high, most > 0 ? Math.log(1 + n) / most : 1);
    });
    const small = el("canvas", { width: String(this.n), height: String(this.n) });
    small.getContext("2d")?.putImageData(image, 0, 0);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, LEFT, TOP, this.side, this.side);
    context.fillStyle = colour("ink");
    context.font = "12px system-ui, sans-serif";
    const each = this.side / this.n;
    const skip = Math.max(1, Math.ceil(this.n / 8));
    for (let i = 0; i < this.n; i += skip) {
      const text = count(i * this.data.group);
      context.textAlign = "right";
      context.fillText(text, LEFT - 6, TOP + i * each + Math.min(14, each / 2 + 4));
      context.textAlign = "left";
      if (LEFT + i * each + 40 < width) context.fillText(text, LEFT + i * each, TOP - 8);
    }
  }
}
