// Rows of pixels from sums: what a rank does in the time of a pixel, stacked from below: computation, MPI, waits.

import { colour, pixel } from "./dom";
import { PARTS } from "./sums";

/** Names of the parts' colours in the style. */
export const COLOURS = ["computation", "mpi", "late-sender", "late-receiver", "collective", "one-sided"];

/** Fewest pixels of a row in which parts are stacked; in lower ones their colours are mixed. */
const STACKED = 12;

export class Painter {
  readonly image: ImageData;
  private readonly pixels: Uint32Array;
  private colours: number[] = [];
  /** Sums of the row at hand, by part and pixel. */
  readonly sums: Float64Array[];
  /** The largest share that one of several ranks waits, by pixel. */
  readonly most: Float64Array;

  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.sums = PARTS.map(() => new Float64Array(width));
    this.most = new Float64Array(width);
  }

  /** An empty picture in the colours of the style as it is now. */
  begin(): void {
    this.colours = COLOURS.map((name) => pixel(colour(name)));
    this.pixels.fill(pixel(colour("ground")));
  }

  /** Nothing in the row at hand. */
  clear(): void {
    for (const sum of this.sums) sum.fill(0);
    this.most.fill(0);
  }

  /** Draws the row at hand from one line of pixels up to another. Pixels that begin and end in one column are alike (`columns`). */
  row(from: number, to: number, columns?: Int32Array): void {
    const [top, bottom] = [Math.max(0, from), Math.min(this.height, to)];
    const gap = to - from >= 6 ? 1 : 0;
    const stacked = to - from - gap >= STACKED;
    const { sums, width, pixels } = this;
    for (let x = 0; x < width; x++) {
      if (columns && x > 0 && columns[x - 1] === columns[x + 1]) {
        for (let at = top * width + x; at < bottom * width; at += width) pixels[at] = pixels[at - 1];
        continue;
      }
      let all = 0;
      for (let part = 0; part < sums.length; part++) all += sums[part][x];
      if (all <= 0) continue;
      if (stacked) this.stack(x, all, [from, to - gap], [top, bottom]);
      else this.blend(x, all, [top, bottom - gap]);
    }
  }

  private stack(x: number, all: number, [from, to]: [number, number], [top, bottom]: [number, number]): void {
    const room = to - from;
    let y = to;
    let seen = 0;
    for (let part = 0; part < this.sums.length; part++) {
      const sum = this.sums[part][x];
      if (sum <= 0) continue;
      seen += sum;
      // What is there is seen, if it is a hundredth.
      let next = to - Math.round((seen / all) * room);
      if (next === y && part >= 2 && sum > all / 100) next = y - 1;
      const [a, b] = [Math.max(top, next), Math.min(bottom, y)];
      for (let line = a; line < b; line++) this.pixels[line * this.width + x] = this.colours[part];
      y = Math.min(y, next);
    }
    if (this.most[x] > 0.05 && this.most[x] > (2 * this.waits(x)) / all) {
      // One of many ranks waits much longer than the others: a line at the top says so.
      const line = Math.max(top, from);
      if (line < bottom) this.pixels[line * this.width + x] = this.colours[this.longest(x)];
    }
  }

  private waits(x: number): number {
    let sum = 0;
    for (let part = 2; part < this.sums.length; part++) sum += this.sums[part][x];
    return sum;
  }

  private longest(x: number): number {
    let longest = 2;
    for (let part = 3; part < this.sums.length; part++) if (this.sums[part][x] > this.sums[longest][x]) longest = part;
    return longest;
  }

  /** The mean colour of what is there; waits count more, so that few of them are seen, and those of one rank among many. */
  private blend(x: number, all: number, [top, bottom]: [number, number]): void {
    const waits = this.waits(x);
    const share = Math.max(waits / all, this.most[x]);
    const weight = waits > 0 && share > 0.01 ? Math.min(1, 0.15 + 0.85 * share) : 0;
    const [others, each] = [(1 - weight) / Math.max(1e-9, all - waits), waits > 0 ? weight / waits : 0];
    let [red, green, blue] = [0, 0, 0];
    for (let part = 0; part < this.sums.length; part++) {
      const sum = this.sums[part][x];
      if (sum <= 0) continue;
      const [of, by] = [this.colours[part], sum * (part < 2 ? others : each)];
      red += (of & 255) * by;
      green += ((of >>> 8) & 255) * by;
      blue += ((of >>> 16) & 255) * by;
    }
    const made = 0xff000000 | (Math.min(255, blue) << 16) | (Math.min(255, green) << 8) | Math.min(255, red);
    for (let at = top * this.width + x; at < bottom * this.width; at += this.width) this.pixels[at] = made;
  }
}
