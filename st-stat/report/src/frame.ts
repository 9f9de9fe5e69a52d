// What stands around and over the rows of a timeline: times, ranks, windows and findings, names of calls, messages.

import { Timeline } from "./data";
import { colour } from "./dom";
import { moment } from "./format";
import { Scene, firstAfter, meetingsIn, messagesIn } from "./scene";

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
  rowOf: Map<number, number>;
  count: number;
  /** Rows that share one. */
  group: number;
  /** What they are. */
  of: string;
}

export const across = ({ width, seen: { from, to } }: Frame) => (t: number): number => LEFT + ((t - from) / (to - from)) * (width - LEFT);

const down = ({ height, top, seen: { first, last } }: Frame) => (row: number): number => top + ((row - first) / (last - first)) * (height - top);

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
    if (at > top && at < height) context.fillText(fitted(context, frame.label(row)), LEFT - 6, at);
  }
  context.fillText(frame.of, LEFT - 6, top - TOP / 2);
  context.textAlign = "left";
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

/** Draws a line over the rows, in a colour of its own on a ground that sets it off, or thin where it would cover the rows; returns
 * what the drawing does. */
export function over(frame: Frame, thin: boolean, draw: (across: (t: number) => number, down: (row: number) => number) => number): number {
  const { context, width, height, top } = frame;
  context.save();
  context.beginPath();
  context.rect(LEFT, top, width - LEFT, height - top);
  context.clip();
  context.lineJoin = "round";
  let of = 0;
  if (thin) context.globalAlpha = 0.85;
  const strokes: [string, number][] = thin ? [["path", 1.3]] : [["ground", 4], ["path", 2]];
  for (const [name, wide] of strokes) {
    context.strokeStyle = colour(name);
    context.lineWidth = wide;
    of = draw(across(frame), down(frame));
  }
  context.restore();
  return of;
}

/** How many lines there are to be seen of messages and of collective operations, below 0 if they are too many. */
export interface Lines {
  messages: number;
  meetings: number;
}

/** Names of calls, where they end, messages and collective operations. */
export function details(frame: Frame, of: Scene): Lines {
  const { context, width, height, data } = frame;
  const { from, to } = frame.seen;
  const [x, y] = [across(frame), down(frame)];
  context.save();
  context.beginPath();
  context.rect(LEFT, frame.top, width - LEFT, height - frame.top);
  context.clip();
  for (const track of of.tracks) {
    const [top, bottom] = track.row.map(y);
    if (bottom < frame.top || top > height) continue;
    for (let i = firstAfter(track, from); i < track.enter.length && track.enter[i] < to; i++) {
      const [a, b] = [x(track.enter[i]), x(track.exit[i])];
      if (b - a < 4) continue;
      context.fillStyle = colour("ground");
      context.fillRect(a, top, 1, bottom - top);
      if (b - a > 60 && bottom - top > 13) label(context, data.places[track.place[i]]?.function ?? "", [Math.max(a, LEFT), Math.min(b, width)], [top, bottom]);
    }
  }
  const middles = of.tracks.map((track) => {
    const [top, bottom] = track.row;
    return y((top + bottom) / 2);
  });
  const visible = messagesIn(of, from, to).filter((m) => {
    const [a, b] = [middles[m.from], middles[m.to]];
    return Math.max(a, b) > frame.top && Math.min(a, b) < height;
  });
  if (visible.length <= LINES) {
    context.strokeStyle = colour("line");
    context.globalAlpha = visible.length > 500 ? 0.35 : 0.8;
    context.beginPath();
    for (const m of visible) {
      context.moveTo(x(m.sent), middles[m.from]);
      context.lineTo(x(m.received), middles[m.to]);
    }
    context.stroke();
  }
  const met = meet(frame, of, middles);
  context.restore();
  return { messages: visible.length <= LINES ? visible.length : -visible.length, meetings: met };
}

/** Draws a line through those that meet in a collective operation when the last of them comes, with a dot on that one. */
function meet(frame: Frame, of: Scene, middles: number[]): number {
  const { context, height, top } = frame;
  const x = across(frame);
  const seen = meetingsIn(of, frame.seen.from, frame.seen.to);
  const visible = seen.map((one) => {
    const rows = [...one.tracks, ...(one.last === null ? [] : [one.last])].map((track) => middles[track]);
    const ends = rows.reduce(([low, high], y) => [Math.min(low, y), Math.max(high, y)], [Infinity, -Infinity]);
    return { one, low: ends[0], high: ends[1] };
  }).filter(({ low, high }) => high > top && low < height);
  if (visible.length > LINES) return -visible.length;
  context.globalAlpha = visible.length > 500 ? 0.35 : 0.9;
  context.setLineDash([5, 3]);
  context.strokeStyle = colour("line");
  context.beginPath();
  for (const { one, low, high } of visible) {
    const at = Math.round(x(one.until)) + 0.5;
    context.moveTo(at, low);
    context.lineTo(at, high);
  }
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = colour("line");
  for (const { one } of visible) {
    if (one.last === null || visible.length > 500) continue;
    context.beginPath();
    context.arc(Math.round(x(one.until)) + 0.5, middles[one.last], 3.5, 0, 7);
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
