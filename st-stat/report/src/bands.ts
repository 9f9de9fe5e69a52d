// Iterations of loops and phases of the program, as bands above the rows of a timeline.

import { Band } from "./data";
import { colour, css, mix, pixel } from "./dom";
import { count, duration, moment } from "./format";
import { Frame, LEFT, across } from "./frame";

/** Room for a band, in CSS pixels. */
const HIGH = 16;
/** Bands at most: there is a timeline below them. */
const MOST = 4;

/** Colours of iterations, from short to long. */
const SHADES = 65;

/** What a band is of, in a few words. */
export const title = (of: Band): string => (of.level === null ? "loop" : `phase ${of.level}`);

/** The same with the place. */
export function full(of: Band): string {
  const what = of.level === null ? `loop of ${count(of.turns)} iterations` : `${count(of.turns)} phases of level ${of.level}`;
  return `${what} from ${of.function}${of.place ? ` (${of.place})` : ""}`;
}

/** Numbers of an iteration, or of the neighbours that are one. */
export function numbers(of: Band, i: number): string {
  const [first, next] = [of.number[i], of.number[i + 1] ?? (of.number[of.number.length - 1] === of.number[i] ? of.turns : of.number[i] + 1)];
  return next - first > 1 ? `${count(first)} to ${count(next - 1)}` : count(first);
}

/** What an iteration takes, in words. */
export function told(of: Band, i: number, origin: number): string {
  const many = numbers(of, i).includes(" ");
  const what = `${of.level === null ? "iteration" : `phase of level ${of.level}, number`}${many && of.level === null ? "s" : ""} ${numbers(of, i)}`;
  const begin = moment(of.begin_ns[i] + origin, Math.max(1, of.time_ns[i] / 1000));
  const waits = of.wait_ns[i] > 0 ? `, waiting ${duration(of.wait_ns[i])}` : "";
  const each = many ? " each" : "";
  return `${what}: ${duration(of.time_ns[i])}${each} from ${begin} in the mean of its ranks, longest ${duration(of.longest_ns[i])} on rank ${of.longest_rank[i]}; in MPI ${duration(of.mpi_ns[i])}${waits}`;
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** The last of ascending numbers that is no larger than one; the first, if none is. */
function before(all: number[], one: number): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (all[middle] > one) high = middle;
    else low = middle + 1;
  }
  return Math.max(0, low - 1);
}

export class Bands {
  private readonly shown: Band[];
  private readonly middles: number[];
  private readonly slow: Set<number>[];
  private scale: { of: string; shades: string[] } = { of: "", shades: [] };

  constructor(
    all: Band[],
    private readonly origin: number,
  ) {
    this.shown = all.slice(0, MOST);
    this.middles = this.shown.map((of) => median(of.time_ns));
    this.slow = this.shown.map((of) => new Set(of.slow.map((n) => before(of.number, n))));
  }

  get height(): number {
    return this.shown.length > 0 ? this.shown.length * HIGH + 4 : 0;
  }

  /** How many iterations of the first of them can be gone to. */
  get count(): number {
    return this.shown[0]?.number.length ?? 0;
  }

  /** Whether one of them has an iteration that takes much longer than others. */
  get anySlow(): boolean {
    return this.slow.some((all) => all.size > 0);
  }

  draw(frame: Frame): void {
    const { context, width } = frame;
    context.save();
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.shown.forEach((of, row) => {
      const top = row * HIGH;
      context.fillStyle = colour("ink");
      context.textAlign = "right";
      context.fillText(title(of), LEFT - 6, top + HIGH / 2);
      context.save();
      context.beginPath();
      context.rect(LEFT, top, width - LEFT, HIGH - 2);
      context.clip();
      this.band(frame, of, row);
      context.restore();
    });
    context.restore();
  }

  private band(frame: Frame, of: Band, row: number): void {
    const { context, width } = frame;
    const { from, to } = frame.seen;
    const x = across(frame);
    const [ink, ground, slow] = ["ink", "ground", "low"].map(colour);
    const shades = this.shades();
    const [top, tall] = [row * HIGH, HIGH - 2];
    context.textAlign = "left";
    for (const late of [false, true]) {
      // What is slow is drawn last, and never narrower than it can be seen. Of others in one pixel the longest is seen.
      let [left, right, longest] = [NaN, NaN, 0];
      const flush = (): void => {
        if (!(right > left)) return;
        context.fillStyle = late ? slow : shades[Math.round(longest * (SHADES - 1))];
        context.fillRect(left, top, right - left, tall);
      };
      for (let i = before(of.begin_ns, from); i < of.number.length && of.begin_ns[i] < to; i++) {
        if (this.slow[row].has(i) !== late) continue;
        const end = Math.min(of.end_ns[i], of.begin_ns[i + 1] ?? Infinity);
        const a = Math.max(LEFT - 2, x(of.begin_ns[i]));
        const b = Math.min(width + 2, Math.max(x(end), a + (late ? 2 : 0)));
        const part = this.part(of, row, i);
        if (b < left + 1) {
          [right, longest] = [Math.max(right, b), Math.max(longest, part)];
          continue;
        }
        flush();
        [left, right, longest] = [a, a + Math.max(late ? 2 : 0.5, b - a - (b - a > 3 ? 1 : 0)), part];
        const text = b - a < 16 ? "" : numbers(of, i);
        if (text === "" || b - a < 9 + 7 * text.length) continue;
        flush();
        left = NaN;
        context.fillStyle = late || part > 0.55 ? ground : ink;
        context.fillText(text, Math.max(a, LEFT) + 4, top + tall / 2);
      }
      flush();
    }
  }

  /** Colours from short to long, made anew where the style's are others. */
  private shades(): string[] {
    const [low, high] = ["heat-low", "heat-high"].map(colour);
    if (this.scale.of !== low + high) {
      const [a, b] = [pixel(low), pixel(high)];
      this.scale = { of: low + high, shades: Array.from({ length: SHADES }, (_, i) => css(mix(a, b, i / (SHADES - 1)))) };
    }
    return this.scale.shades;
  }

  /** How long an iteration is among others: half of the median is 0, one and a half 1. */
  private part(of: Band, row: number, i: number): number {
    return Math.min(1, Math.max(0, of.time_ns[i] / Math.max(1, this.middles[row]) - 0.5));
  }

  /** The band and iteration at a height above the rows and a time, if there is one. */
  at(y: number, time: number): { of: Band; i: number } | undefined {
    const of = this.shown[Math.floor(y / HIGH)];
    if (!of) return undefined;
    const i = before(of.begin_ns, time);
    return of.begin_ns[i] <= time && time < of.end_ns[i] ? { of, i } : undefined;
  }

  tell(y: number, time: number): string {
    const found = this.at(y, time);
    return found ? `${told(found.of, found.i, this.origin)} · ${full(found.of)}` : "";
  }

  /** From when to when an iteration of the first band is. */
  time(i: number): [number, number] | undefined {
    const of = this.shown[0];
    return of && i >= 0 && i < of.number.length ? [of.begin_ns[i], of.end_ns[i]] : undefined;
  }

  /** The iteration of the first band that is in the middle of what is seen, and whether no more than it is. Iterations of ranks that are
   * apart overlap: one that was gone to need not be in the middle. */
  here({ from, to }: { from: number; to: number }): { i: number; alone: boolean } {
    const i = before(this.shown[0]?.begin_ns ?? [], (from + to) / 2);
    const [begin, end] = this.time(i) ?? [0, 0];
    return { i, alone: from >= begin && to <= end };
  }
}
