// Colours of a timeline's cells, which are the same at any zoom at which a column is no narrower than a pixel: made when a row is first
// seen, so that a frame has nothing to do but to copy them.

import { Levels } from "./data";
import { Cells, cells, mixed, upper } from "./paint";
import { Sums } from "./sums";

export class CellColours {
  private readonly made: Uint32Array;
  /** Of their upper edges. */
  private readonly above: Uint32Array;
  private readonly ready: Uint8Array;
  private readonly work: Cells;
  private colours = new Uint32Array(0);

  constructor(
    private readonly levels: Levels,
    private readonly sums: Sums,
  ) {
    this.made = new Uint32Array(levels.rows * levels.columns);
    this.above = new Uint32Array(levels.rows * levels.columns);
    this.ready = new Uint8Array(levels.rows);
    this.work = cells(levels.columns);
  }

  /** By column, and of their upper edges; 0 where nothing is. */
  row(row: number, colours: Uint32Array): [Uint32Array, Uint32Array] {
    const { columns } = this.levels;
    if (colours.length !== this.colours.length || colours.some((one, i) => one !== this.colours[i])) {
      this.colours = colours.slice();
      this.ready.fill(0);
    }
    const [to, above] = [this.made, this.above].map((all) => all.subarray(row * columns, (row + 1) * columns));
    if (this.ready[row] !== 0) return [to, above];
    for (const sum of this.work.sums) sum.fill(0);
    this.work.most.fill(0);
    this.work.busiest.fill(0);
    this.sums.columns(row, [0, columns], this.work);
    for (let i = 0; i < columns; i++) {
      to[i] = mixed(colours, this.work, i);
      above[i] = upper(colours, this.work, i, to[i]);
    }
    this.ready[row] = 1;
    return [to, above];
  }
}

/** Where columns from one to before another begin, and where the last of them ends, in pixels of so many. */
export function edges(of: Levels, [first, last]: [number, number], from: number, pixel: number, pixels: number): Int32Array {
  const to = new Int32Array(last - first + 1);
  for (let i = 0; i < to.length; i++) to[i] = Math.min(pixels, Math.max(0, Math.round(((first + i) * of.column_ns - from) / pixel)));
  return to;
}
