// Rows of pixels from sums: what a rank does in the time of a pixel, stacked from below: computation, MPI, waits.

import { colour, mix, pixel } from "./dom";
import { PARTS } from "./sums";

/** Names of the parts' colours in the style. */
export const COLOURS = ["computation", "mpi", "late-sender", "late-receiver", "collective", "one-sided"];

/** Fewest pixels of a row in which parts are stacked. */
const STACKED = 4;

export class Painter {
  readonly image: ImageData;
  private readonly pixels: Uint32Array;
  private readonly colours: number[];
  private readonly ground: number;
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
    this.colours = COLOURS.map((name) => pixel(colour(name)));
    this.ground = pixel(colour("ground"));
    this.pixels.fill(this.ground);
    this.sums = PARTS.map(() => new Float64Array(width));
    this.most = new Float64Array(width);
  }

  clear(): void {
    for (const sum of this.sums) sum.fill(0);
    this.most.fill(0);
  }

  /** Draws the row at hand from one line of pixels up to another. */
  row(from: number, to: number): void {
    const [top, bottom] = [Math.max(0, from), Math.min(this.height, to)];
    const height = to - from;
    const gap = height >= 6 ? 1 : 0;
    for (let x = 0; x < this.width; x++) {
      let all = 0;
      for (const sum of this.sums) all += sum[x];
      if (all <= 0) continue;
      if (height - gap >= STACKED) this.stack(x, all, [from, to - gap], [top, bottom]);
      else this.blend(x, all, [top, bottom]);
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

  private blend(x: number, all: number, [top, bottom]: [number, number]): void {
    const [waits, mpi] = [this.waits(x), this.sums[1][x]];
    let made = mix(this.colours[0], this.colours[1], mpi / Math.max(1, all - waits));
    const share = Math.max(waits / all, this.most[x]);
    if (share > 0.02) made = mix(made, this.colours[this.longest(x)], Math.min(1, 0.3 + 0.7 * share));
    for (let line = top; line < bottom; line++) this.pixels[line * this.width + x] = made;
  }
}
