// What stands around and over the rows of a timeline: times, ranks, windows and findings, names of calls, messages.

import { Timeline } from "./data";
import { colour } from "./dom";
import { duration, moment } from "./format";
import { Rows } from "./rows";
import { Scene, firstAfter, meetingsIn, messagesIn, middle } from "./scene";

/** Room for numbers of ranks, and for times above the rows, in CSS pixels. */
export const LEFT = 58;
export const TOP = 22;
/** Lines for messages, and for collective operations, at most. */
const LINES = 3000;

/** What is seen: which window (none: the whole run), times, and rows. */
export interface Seen {
  window: number | null;
  from: number;
  to: number;
  first: number;
  last: number;
}

/** What is drawn on, and what is seen there. */
export interface Frame {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  /** Where rows begin, below times and what stands above these. */
  top: number;
  seen: Seen;
  data: Timeline;
  /** What rows are called, and of which ranks each is. */
  label: (row: number) => string;
  ranks: (row: number) => string;
  rowOf: Map<number, number>;
  count: number;
  /** Rows that share one. */
  group: number;
  /** What they are. */
  of: string;
}

export const across = ({ width, seen: { from, to } }: Frame) => (t: number): number => LEFT + ((t - from) / (to - from)) * (width - LEFT);

export const down = ({ height, top, seen: { first, last } }: Frame) => (row: number): number => top + ((row - first) / (last - first)) * (height - top);

/** Times at which lines are drawn: at most so many. */
function ticks(from: number, to: number, most: number): { step: number; at: number[] } {
  const rough = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? power * 10;
  const at: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) at.push(t);
  return { step, at };
}

/** The end of a name that has no room on the left: of nodes the end differs. */
function fitted(context: CanvasRenderingContext2D, name: string): string {
  let text = name;
  while (text.length > 2 && context.measureText(text).width > LEFT - 10) text = `…${text.slice(text.startsWith("…") ? 2 : 1)}`;
  return text;
}

/** The beginning of a list that has no room on the left. */
function begun(context: CanvasRenderingContext2D, list: string): string {
  let text = list;
  while (text.length > 2 && context.measureText(text).width > LEFT - 10) text = `${text.slice(0, text.endsWith("…") ? -2 : -1)}…`;
  return text;
}

/** Times above, ranks on the left, windows and findings. */
export function axes(frame: Frame): void {
  const { context, width, height, top, data, count, group: unit } = frame;
  const { from, to, first, last } = frame.seen;
  const [x, y] = [across(frame), down(frame)];
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  const origin = data.origin_ns;
  const { step, at } = ticks(from + origin, to + origin, (width - LEFT) / 110);
  context.fillStyle = colour("ink");
  context.strokeStyle = colour("rule");
  for (const t of at) {
    const where = Math.round(x(t - origin)) + 0.5;
    context.beginPath();
    context.moveTo(where, top - 5);
    context.lineTo(where, height);
    context.globalAlpha = 0.35;
    context.stroke();
    context.globalAlpha = 1;
    const text = moment(t, step);
    if (where + context.measureText(text).width + 4 < width) context.fillText(text, where + 3, top - TOP / 2);
  }
  const each = ((height - top) / (last - first)) * unit;
  const skip = 2 ** Math.max(0, Math.ceil(Math.log2(15 / each))) * unit;
  context.textAlign = "right";
  for (let row = Math.ceil(first / skip) * skip; row < last && row < count; row += skip) {
    const at = y(row + Math.min(unit, count - row) / 2);
    if (at <= top || at >= height) continue;
    const below = each >= 30 ? frame.ranks(row) : "";
    context.fillText(fitted(context, frame.label(row)), LEFT - 6, below ? at - 6 : at);
    if (!below) continue;
    context.fillStyle = colour("soft");
    context.font = "10px system-ui, sans-serif";
    context.fillText(begun(context, below), LEFT - 6, at + 7);
    context.fillStyle = colour("ink");
    context.font = "12px system-ui, sans-serif";
  }
  context.fillText(frame.of, LEFT - 6, top - TOP / 2);
  context.textAlign = "left";
}

/** Numbers of ranks that stand by themselves, from a height on, each so high; and where they are among the others. */
export function alone(frame: Frame, [from, high]: [number, number], rows: Rows): void {
  const { context, height, top, rowOf } = frame;
  const y = down(frame);
  context.save();
  context.font = "bold 12px system-ui, sans-serif";
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = colour("ink");
  rows.levels.ranks.forEach((rank, row) => {
    context.fillText(rows.label(row), LEFT - 6, from + (row + 0.5) * high);
    const at = rowOf.get(rank);
    if (at === undefined) return;
    const where = y(at + 0.5);
    if (where < top || where > height) return;
    context.beginPath();
    context.moveTo(LEFT - 5, where - 4);
    context.lineTo(LEFT - 5, where + 4);
    context.lineTo(LEFT, where);
    context.fill();
  });
  context.restore();
}

/** Windows of single calls and findings above the rows of the whole run; if wished, circles on the ranks that wait. */
export function marks(frame: Frame, circles: boolean): void {
  const { context, data, top } = frame;
  const [x, y] = [across(frame), down(frame)];
  context.strokeStyle = colour("ink");
  for (const window of data.windows) {
    if (window.whole) continue;
    const [a, b] = [x(window.from_ns), Math.max(x(window.from_ns) + 2, x(window.to_ns))];
    if (b < LEFT) continue;
    context.strokeRect(Math.max(LEFT, a) + 0.5, top - 3.5, b - Math.max(LEFT, a), 3);
  }
  context.fillStyle = colour("ink");
  for (const spot of data.spots) {
    const at = x((spot.from_ns + spot.to_ns) / 2);
    if (at < LEFT) continue;
    context.beginPath();
    context.moveTo(at - 5, top - 9);
    context.lineTo(at + 5, top - 9);
    context.lineTo(at, top - 1);
    context.fill();
    if (!circles) continue;
    context.beginPath();
    context.arc(at, y((frame.rowOf.get(spot.rank) ?? 0) + 0.5), 6, 0, 7);
    context.stroke();
  }
}

/** Draws a line over the rows, in a colour of its own on a ground that sets it off, or thin where it would cover the rows. */
export function over(frame: Frame, thin: boolean, line: Path2D): void {
  const { context, width, height, top } = frame;
  context.save();
  context.beginPath();
  context.rect(LEFT, top, width - LEFT, height - top);
  context.clip();
  context.lineJoin = "round";
  if (thin) context.globalAlpha = 0.6;
  const strokes: [string, number][] = thin ? [["path", 1]] : [["ground", 3], ["path", 1.5]];
  for (const [name, wide] of strokes) {
    context.strokeStyle = colour(name);
    context.lineWidth = wide;
    context.stroke(line);
  }
  context.restore();
}

/** Lines at the ends of a ruler, and how long it is between them. */
export function rulerLines(frame: Frame, ends: number[]): void {
  const { context, width, height, top } = frame;
  const at = ends.map(across(frame));
  context.save();
  context.beginPath();
  context.rect(LEFT, top, width - LEFT, height - top);
  context.clip();
  for (const [name, wide] of [["ground", 4], ["ink", 1.5]] as const) {
    context.strokeStyle = colour(name);
    context.lineWidth = wide;
    context.beginPath();
    for (const x of at) {
      context.moveTo(x, top);
      context.lineTo(x, height);
    }
    context.stroke();
  }
  if (ends.length === 2) {
    const text = duration(Math.round(ends[1] - ends[0]));
    const long = context.measureText(text).width;
    const x = Math.min(Math.max((Math.max(at[0], LEFT) + Math.min(at[1], width)) / 2, LEFT + long / 2 + 6), width - long / 2 - 6);
    context.fillStyle = colour("ground");
    context.fillRect(x - long / 2 - 5, top + 4, long + 10, 18);
    context.fillStyle = colour("ink");
    context.textAlign = "center";
    context.fillText(text, x, top + 13);
  }
  context.restore();
}

/** How many lines there are to be seen of messages and of collective operations, below 0 if they are too many. */
export interface Lines {
  messages: number;
  meetings: number;
}

/** Names of calls, where they end, messages and collective operations. */
export function details(frame: Frame, of: Scene): Lines {
  const { context, width, height } = frame;
  context.save();
  context.beginPath();
  context.rect(LEFT, frame.top, width - LEFT, height - frame.top);
  context.clip();
  names(frame, of);
  const messages = lines(frame, of);
  const met = meet(frame, of);
  context.restore();
  return { messages, meetings: met };
}

/** Names of calls that have room, and where calls begin that follow each other. */
function names(frame: Frame, of: Scene): void {
  const { context, width, height, data } = frame;
  const { from, to } = frame.seen;
  const [x, y] = [across(frame), down(frame)];
  const pixel = (to - from) / (width - LEFT);
  const ground = colour("ground");
  for (const track of of.tracks) {
    if (track.longest < 4 * pixel) continue;
    const [top, bottom] = [y(track.row[0]), y(track.row[1])];
    if (bottom < frame.top || top > height) continue;
    for (let i = firstAfter(track, from); i < track.enter.length && track.enter[i] < to; i++) {
      if (track.exit[i] - track.enter[i] < 4 * pixel) continue;
      const [a, b] = [x(track.enter[i]), x(track.exit[i])];
      context.fillStyle = ground;
      context.fillRect(a, top, 1, bottom - top);
      if (b - a > 60 && bottom - top > 13) label(context, data.places[track.place[i]]?.function ?? "", [Math.max(a, LEFT), Math.min(b, width)], [top, bottom]);
    }
  }
}

/** Draws messages that are seen; returns how many these are, below 0 if they are too many to be drawn. */
function lines(frame: Frame, of: Scene): number {
  const { context, height, top } = frame;
  const { from, to } = frame.seen;
  const [x, y] = [across(frame), down(frame)];
  const { messages } = of;
  const middles = Float64Array.from(of.tracks, (track) => y(middle(track)));
  const [begin, end] = messagesIn(of, from, to);
  const seen: number[] = [];
  let count = 0;
  for (let m = begin; m < end; m++) {
    if (messages.received[m] <= from) continue;
    const a = middles[messages.from[m]];
    const b = middles[messages.to[m]];
    if ((a <= top && b <= top) || (a >= height && b >= height)) continue;
    count += 1;
    if (count <= LINES) seen.push(m);
  }
  if (count > LINES) return -count;
  context.strokeStyle = colour("line");
  context.globalAlpha = count > 500 ? 0.35 : 0.8;
  context.beginPath();
  for (const m of seen) {
    context.moveTo(x(messages.sent[m]), middles[messages.from[m]]);
    context.lineTo(x(messages.received[m]), middles[messages.to[m]]);
  }
  context.stroke();
  return count;
}

/** Draws a line through those that meet in a collective operation when the last of them comes, with a dot on that one. */
function meet(frame: Frame, of: Scene): number {
  const { context, height, top } = frame;
  const [x, y] = [across(frame), down(frame)];
  const visible = meetingsIn(of, frame.seen.from, frame.seen.to).filter(({ low, high }) => y(high) > top && y(low) < height);
  if (visible.length > LINES) return -visible.length;
  context.globalAlpha = visible.length > 500 ? 0.35 : 0.9;
  context.setLineDash([5, 3]);
  context.strokeStyle = colour("line");
  context.beginPath();
  for (const { until, low, high } of visible) {
    const at = Math.round(x(until)) + 0.5;
    context.moveTo(at, y(low));
    context.lineTo(at, y(high));
  }
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = colour("line");
  for (const { until, last } of visible) {
    if (last === null || visible.length > 500) continue;
    context.beginPath();
    context.arc(Math.round(x(until)) + 0.5, y(middle(of.tracks[last])), 3.5, 0, 7);
    context.fill();
  }
  context.globalAlpha = 1;
  return visible.length;
}

function label(context: CanvasRenderingContext2D, text: string, [a, b]: [number, number], [top, bottom]: [number, number]): void {
  context.fillStyle = colour("on-call");
  context.save();
  context.beginPath();
  context.rect(a + 2, top, b - a - 4, bottom - top);
  context.clip();
  context.fillText(text, a + 4, (top + bottom) / 2);
  context.restore();
}
