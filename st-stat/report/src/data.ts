// What a page holds, as st-stat/src/report/data.rs writes it, which says what each part means. Times are ns.

export const FORM = 3;

export type Value = number | string | boolean | null;

export interface Column {
  key: string;
  title: string;
  values: Value[];
  texts?: string[];
}

export interface Table {
  columns: Column[];
  /** Rows of the whole table, of which these are the first. */
  rows: number;
  /** Sums over those that are left out. */
  rest: Record<string, number>;
}

/** By which call paths call sites are reached. */
export interface Stacks {
  frames: string[];
  /** By row of the table of call sites: numbers of frames, the outermost first. */
  of: number[][];
}

export interface Matrix {
  ranks: number;
  group: number;
  from: number[];
  to: number[];
  messages: number[];
  bytes: number[];
  pairs: Table;
}

export interface Place {
  function: string;
  site: number | null;
  place: string;
}

export interface Levels {
  group: number;
  count: number;
  /** None, if they are all from 0 on. */
  ranks: number[];
  rows: number;
  columns: number;
  column_ns: number;
  computation: number[];
  mpi: number[];
  waits: number[][];
  most: number[];
  busiest: number[];
}

export interface Lane {
  rank: number;
  thread: number;
  begin: number;
  /** By three: place, time since the end of the call before, duration. */
  calls: number[];
  /** By four: time since the beginning of the one before, duration, kind, rank that is waited for. */
  waits: number[];
}

export interface Window {
  from_ns: number;
  to_ns: number;
  whole: boolean;
  lanes: Lane[];
  from: number[];
  to: number[];
  sent: number[];
  took: number[];
  bytes: number[];
  more: number;
}

export interface Spot {
  finding: number;
  from_ns: number;
  to_ns: number;
  rank: number;
  /** None, if it is a call's own time. */
  for_rank: number | null;
  ns: number;
}

/** Nodes, or clusters, as rows. */
export interface Groups {
  names: string[];
  /** Which ranks are in each. */
  ranks: string[];
  /** By rank of the timeline, in order: the number of its node or cluster. */
  of: number[];
  levels: Levels;
}

export interface Timeline {
  run_ns: number;
  origin_ns: number;
  places: Place[];
  levels: Levels;
  /** Of many ranks those at the ends, a row each. */
  extremes: Levels | null;
  /** Rows of fewer ranks than those of `levels`, in fewer columns. */
  fine: Levels | null;
  nodes: Groups | null;
  clusters: Groups | null;
  windows: Window[];
  spots: Spot[];
  /** By two: rank, for how long the critical path is there. */
  path: number[];
  path_more: number;
}

export interface Call {
  function: string;
  site: number | null;
  place: string;
  mean_ns: number | null;
  before_ns: number | null;
}

export interface Structure {
  ranks: string;
  thread: number;
  rank: number;
  depth: number[];
  runs: number[];
  call: (number | null)[];
  calls: Call[];
  more: number;
}

/** What ranks do, where the trace does not tell when. */
export interface LogicalTime {
  told: string;
  timed: boolean;
  boxes: Table;
}

/** Iterations of a loop, or phases of one level; of many neighbours are one. */
export interface Band {
  level: number | null;
  function: string;
  site: number | null;
  place: string;
  turns: number;
  trend: number | null;
  number: number[];
  begin_ns: number[];
  end_ns: number[];
  time_ns: number[];
  longest_ns: number[];
  longest_rank: number[];
  mpi_ns: number[];
  wait_ns: number[];
  slow: number[];
  slow_more: number;
}

/** What has changed since another run. */
export interface Against {
  command: string;
  runs: string;
  counts: string;
  changes: Table;
  /** Of the other trace, if it is of the same run. */
  violations: Table | null;
}

export interface Clocks {
  corrected: boolean;
  violations: Table | null;
  pairs: Table | null;
  no_violations: string | null;
  offsets: Table | null;
}

/** What the trace itself is. */
export interface Kept {
  tools: string[];
  frames: Table | null;
  sites: Table | null;
  parameters: Table | null;
  no_sizes: string | null;
  clocks: Clocks;
}

/** A page that is made anew while its program runs. */
export interface Live {
  told: string;
  written_ms: number;
  every_ms: number;
}

export interface Report {
  form: number;
  made_by: string;
  program: string;
  lacks: string[];
  summary: Table;
  findings: Table | null;
  waits: Table | null;
  efficiency: Table | null;
  functions: Table | null;
  sites: Table | null;
  stacks: Stacks | null;
  spread: Table | null;
  ranks: Table;
  grid_width: number;
  matrix: Matrix | null;
  timeline: Timeline | null;
  logical: LogicalTime | null;
  structure: Structure[];
  iterations: Table | null;
  phases: Table | null;
  bands: Band[];
  against: Against | null;
  kept: Kept | null;
  live: Live | null;
}

/** Decodes what stands in the page: base64 of gzip of JSON. */
export async function decode(text: string): Promise<Report> {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const plain = new Response(bytes).body?.pipeThrough(new DecompressionStream("gzip"));
  const report = (await new Response(plain).json()) as Report;
  if (report.form !== FORM) throw new Error(`data of form ${report.form}, this page reads form ${FORM}`);
  return report;
}

/** The values of a column, if the table has it. */
export function column(table: Table | null, key: string): Value[] | undefined {
  return table?.columns.find((c) => c.key === key)?.values;
}

/** A number of a table's row. */
export function number(table: Table | null, key: string, row = 0): number | undefined {
  const value = column(table, key)?.[row];
  return typeof value === "number" ? value : undefined;
}
