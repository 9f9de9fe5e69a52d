// Rows of pixels from sums: what a rank does in the time of a cell, stacked from below: computation, MPI, waits. A cell is a pixel, or
// a column of the timeline that is as wide as some.

import { colour, pixel } from "./dom";
import { PARTS } from "./sums";

/** Names of the parts' colours in the style. */
export const COLOURS = ["computation", "mpi", "late-sender", "late-receiver", "collective", "one-sided"];

/** Fewest pixels of a row in which parts are stacked; in lower ones their colours are mixed. */
const STACKED = 12;

/** What cells of a row consist of. */
export interface Cells {
  /** By part and cell, ns. */
  sums: Float64Array[];
  /** The largest share that one of several ranks waits, and computes, by cell. */
  most: Float64Array;
  busiest: Float64Array;
}

export const cells = (n: number): Cells => ({ sums: PARTS.map(() => new Float64Array(n)), most: new Float64Array(n), busiest: new Float64Array(n) });

/** The sum of all that is in a cell. */
function all({ sums }: Cells, i: number): number {
  let sum = 0;
  for (let part = 0; part < sums.length; part++) sum += sums[part][i];
  return sum;
}

/** The sum of a cell's waits. */
function waiting({ sums }: Cells, i: number): number {
  let sum = 0;
  for (let part = 2; part < sums.length; part++) sum += sums[part][i];
  return sum;
}

// Below are the inner loops of a frame: no arrays are made in them.

/** The mean colour of what is in a cell; waits count more, so that few of them are seen, and those of one rank among many. 0: nothing is. */
export function mixed(colours: Uint32Array, of: Cells, i: number): number {
  const { sums } = of;
  let busy = 0;
  let waits = 0;
  let parts = 0;
  let one = 0;
  for (let part = 0; part < sums.length; part++) {
    const sum = sums[part][i];
    if (sum <= 0) continue;
    if (part < 2) busy += sum;
    else waits += sum;
    parts += 1;
    one = part;
  }
  if (parts < 2) return parts === 0 ? 0 : colours[one];
  const share = Math.max(waits / (busy + waits), of.most[i]);
  const weight = waits > 0 && share > 0.01 ? Math.min(1, 0.15 + 0.85 * share) : 0;
  const others = (1 - weight) / Math.max(1e-9, busy);
  const each = waits > 0 ? weight / waits : 0;
  let red = 0;
  let green = 0;
  let blue = 0;
  for (let part = 0; part <= one; part++) {
    const by = sums[part][i] * (part < 2 ? others : each);
    if (by <= 0) continue;
    const shade = colours[part];
    red += (shade & 255) * by;
    green += ((shade >>> 8) & 255) * by;
    blue += ((shade >>> 16) & 255) * by;
  }
  return (0xff000000 | (Math.min(255, blue) << 16) | (Math.min(255, green) << 8) | Math.min(255, red)) >>> 0;
}

/** The colour of a cell's upper edge, whose own colour is known: the nearer to that of computation, the more the rank that computes most does
 * beyond the mean of those that share the row. So one slow rank among many that wait for it is seen. */
export function upper(colours: Uint32Array, of: Cells, i: number, own: number): number {
  const whole = all(of, i);
  if (own === 0 || whole <= 0 || of.busiest[i] <= 0) return own;
  const mean = of.sums[0][i] / whole;
  const by = (of.busiest[i] - mean) / Math.max(1e-9, 1 - mean);
  // Means are exact, shares of one rank are in percent.
  if (of.busiest[i] - mean < 0.02) return own;
  const between = (shift: number): number => {
    const [a, b] = [(own >>> shift) & 255, (colours[0] >>> shift) & 255];
    return Math.min(255, Math.max(0, a + (b - a) * Math.min(1, by))) << shift;
  };
  return (0xff000000 | between(16) | between(8) | between(0)) >>> 0;
}

export class Painter {
  readonly image: ImageData;
  readonly colours = new Uint32Array(COLOURS.length);
  private readonly pixels: Uint32Array;
  /** The row at hand. */
  readonly cells: Cells;
  /** Where each pixel begins and the last one ends. */
  readonly each: Int32Array;

  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    // No column is narrower than a pixel; those at both ends may be seen in part.
    this.cells = cells(width + 2);
    this.each = Int32Array.from({ length: width + 1 }, (_, i) => i);
  }

  /** An empty picture in the colours of the style as it is now. */
  begin(): void {
    COLOURS.forEach((name, i) => (this.colours[i] = pixel(colour(name))));
    this.pixels.fill(pixel(colour("ground")));
  }

  /** Nothing in the row at hand. */
  clear(): void {
    for (const sum of this.cells.sums) sum.fill(0);
    this.cells.most.fill(0);
    this.cells.busiest.fill(0);
  }

  /** Whether parts are stacked in a row from one line of pixels up to another. */
  stacks(from: number, to: number): boolean {
    return to - from - this.gap(from, to) >= STACKED;
  }

  private gap(from: number, to: number): number {
    return to - from >= 6 ? 1 : 0;
  }

  /** Draws the row at hand from one line of pixels up to another. `edges`: where cells begin, and where the last one ends. */
  row(from: number, to: number, edges: Int32Array): void {
    const mean = (i: number): number => mixed(this.colours, this.cells, i);
    if (!this.stacks(from, to)) return this.line(from, to, edges, mean, (i) => upper(this.colours, this.cells, i, mean(i)));
    const end = to - this.gap(from, to);
    for (let i = 0; i + 1 < edges.length; i++) if (edges[i] < edges[i + 1]) this.stack(i, edges[i], edges[i + 1], from, end);
  }

  /** Draws a row of cells of one colour each, and one of the upper edge; 0 is none. A row that is one line has the mean of both: its
   * waits are seen, too. */
  line(from: number, to: number, edges: Int32Array, shade: (i: number) => number, edge: (i: number) => number): void {
    const { pixels, width } = this;
    const [top, bottom] = [Math.max(0, from), Math.min(this.height, to - this.gap(from, to))];
    if (top >= bottom) return;
    const base = top * width;
    for (let i = 0; i + 1 < edges.length; i++) {
      if (edges[i] >= edges[i + 1]) continue;
      const made = shade(i);
      if (made !== 0) for (let x = edges[i]; x < edges[i + 1]; x++) pixels[base + x] = made;
    }
    for (let line = top + 1; line < bottom; line++) pixels.copyWithin(line * width, base, base + width);
    if (top !== from) return;
    for (let i = 0; i + 1 < edges.length; i++) {
      const made = edges[i] < edges[i + 1] ? edge(i) : 0;
      if (made === 0) continue;
      const own = pixels[base + edges[i]];
      // Both halves of each of the four bytes.
      const shown = bottom > top + 1 ? made : ((((own ^ made) & 0xfefefefe) >>> 1) + (own & made)) >>> 0;
      for (let x = edges[i]; x < edges[i + 1]; x++) pixels[base + x] = shown;
    }
  }

  private stack(i: number, left: number, right: number, from: number, to: number): void {
    const { sums, most, busiest } = this.cells;
    const whole = all(this.cells, i);
    if (whole <= 0) return;
    const top = Math.max(0, from);
    const bottom = Math.min(this.height, to);
    let y = to;
    let seen = 0;
    for (let part = 0; part < sums.length; part++) {
      const sum = sums[part][i];
      if (sum <= 0) continue;
      seen += sum;
      // What is there is seen, if it is a hundredth.
      let next = to - Math.round((seen / whole) * (to - from));
      if (next === y && part >= 2 && sum > whole / 100) next = y - 1;
      this.fill(this.colours[part], left, right, Math.max(top, next), Math.min(bottom, y));
      y = Math.min(y, next);
    }
    if (most[i] > 0.05 && most[i] > (2 * waiting(this.cells, i)) / whole) {
      // One of many ranks waits much longer than the others: a line at the top says so.
      this.fill(this.colours[this.longest(i)], left, right, top, Math.min(bottom, top + 1));
    }
    // The rank that computes most has a line as high as it would be by itself.
    const high = to - Math.round(busiest[i] * (to - from));
    if (busiest[i] > sums[0][i] / whole + 0.05) this.fill(this.colours[0], left, right, Math.max(top, high), Math.min(bottom, high + 1));
  }

  private fill(shade: number, left: number, right: number, top: number, bottom: number): void {
    const { pixels, width } = this;
    for (let x = left; x < right; x++) {
      for (let at = top * width + x; at < bottom * width + x; at += width) pixels[at] = shade;
    }
  }

  private longest(i: number): number {
    const { sums } = this.cells;
    let longest = 2;
    for (let part = 3; part < sums.length; part++) if (sums[part][i] > sums[longest][i]) longest = part;
    return longest;
  }
}
