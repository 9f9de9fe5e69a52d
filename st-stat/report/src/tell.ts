// What is at a point of a timeline, in words.

import { Timeline } from "./data";
import { bytes, duration, moment, percent } from "./format";
import { Rows } from "./rows";
import { Scene, firstAfter, waitAfter } from "./scene";
import { KINDS, PARTS, times } from "./sums";

/** The call of a track at a time, or the computation. */
export function call(data: Timeline, of: Scene, t: number, row: number): string {
  const track = of.tracks.find((one) => {
    const [top, bottom] = one.row;
    return row >= top && row < bottom;
  });
  if (!track) return "";
  const at = (time: number): string => moment(time + data.origin_ns, 1);
  const who = `rank ${track.rank}${of.tracks.some((one) => one.rank === track.rank && one !== track) ? `, thread ${track.thread}` : ""}`;
  const i = firstAfter(track, t);
  if (i >= track.enter.length || track.enter[i] > t) {
    const [a, b] = [i > 0 ? track.exit[i - 1] : track.begin, i < track.enter.length ? track.enter[i] : t];
    return t < track.begin ? "" : `${who}: computation, ${duration(b - a)} from ${at(a)}`;
  }
  const place = data.places[track.place[i]];
  const where = place?.site === null || !place ? "" : ` (site ${place.site}, ${place.place})`;
  const enter = track.enter[i];
  const { waits: all, exit } = track;
  const wait = waitAfter(track, enter);
  const waits = all.enter[wait] < exit[i] ? `; waits ${duration(all.until[wait] - all.enter[wait])} of it for rank ${all.for[wait]} (${KINDS[all.kind[wait]]})` : "";
  const { messages: sent } = of;
  const got = [...sent.to.keys()].filter((m) => sent.received[m] === exit[i] && of.tracks[sent.to[m]] === track);
  const from = got.slice(0, 4).map((m) => `${sent.bytes[m] >= 0 ? bytes(sent.bytes[m]) : "?"} from rank ${of.tracks[sent.from[m]].rank}`);
  const messages = got.length > 0 ? `; receives ${from.join(", ")}${got.length > 4 ? ` and ${got.length - 4} more` : ""}` : "";
  return `${who}: ${place?.function ?? "?"}${where}, ${duration(track.exit[i] - enter)} from ${at(enter)}${waits}${messages}`;
}

/** What a row consists of about a time, in a pixel or a column, whichever is wider. */
export function cell(data: Timeline, of_rows: Rows, [t, row, pixel]: [number, number, number]): string {
  const { levels, sums: all } = of_rows;
  const { group, rows, columns, column_ns: column } = levels;
  const of = Math.floor(row / group);
  if (of >= rows || of < 0) return "";
  // As wide as a pixel, but whole columns.
  const wide = Math.max(1, Math.round(pixel / column));
  const begin = Math.min(columns - 1, Math.floor(t / column / wide) * wide);
  const end = Math.min(columns, begin + wide);
  const sums = PARTS.map(() => new Float64Array(1));
  all.add(of, times(levels, begin * column, (end - begin) * column, 1), sums);
  const whole = sums.reduce((sum, [ns]) => sum + ns, 0);
  const parts = PARTS.map((name, i) => (sums[i][0] > 0 ? `${i >= 2 ? "wait: " : ""}${name} ${duration(Math.round(sums[i][0]))} (${percent(sums[i][0], whole)})` : ""));
  const [most, busiest] = [new Float64Array(1), new Float64Array(1)];
  all.longest(of, begin * column, column, most, busiest);
  const ones = [`waits up to ${percent(most[0], 1)}`, `computes up to ${percent(busiest[0], 1)}`].filter((_, i) => [most, busiest][i][0] > 0);
  const one = ones.length > 0 ? `; of ${duration(column)} there one rank ${ones.join(", one ")}` : "";
  const from = moment(begin * column + data.origin_ns, column / 10);
  return `${of_rows.who(of)}, ${duration((end - begin) * column)} from ${from}: ${parts.filter((p) => p).join(", ") || "nothing"}${one}`;
}
