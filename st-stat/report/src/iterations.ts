// How long iterations of the outermost loops and phases of the program take, one after the other.

import { full, told } from "./bands";
import { Bar, Bars } from "./bars";
import { Band, Report } from "./data";
import { el } from "./dom";
import { count } from "./format";
import { TableView } from "./table";

function bars(of: Band, origin: number): Bar[] {
  return of.number.map((number, i) => {
    const [time, mpi, wait] = [of.time_ns[i], of.mpi_ns[i], of.wait_ns[i]];
    return { number, parts: [Math.max(0, time - mpi), Math.max(0, mpi - wait), wait], most: of.longest_ns[i], said: told(of, i, origin) };
  });
}

/** What is slow, and how times change by the end. */
function remark(of: Band): string {
  const parts: string[] = [];
  const change = Math.abs((of.trend ?? 0) * 100);
  if (of.trend !== null) parts.push(change < 0.05 ? "no trend" : `${of.trend < 0 ? "−" : "+"}${change.toFixed(1)} % by the end, by the trend`);
  const slow = of.slow.slice(0, 5).map(count).join(", ");
  const more = of.slow.length + of.slow_more - 5;
  if (slow) parts.push(`slow: ${slow}${more > 0 ? ` and ${count(more)} more` : ""}`);
  if (of.number.length < of.turns) parts.push(`neighbours share a bar: ${count(of.number.length)} bars`);
  return parts.join("; ");
}

export interface Drawn {
  root: HTMLElement;
  draw: () => void;
}

/** Bars of each loop and level, and the tables; null where none is known. */
export function iterations(report: Report, go: (from: number, to: number) => void): Drawn | null {
  if (!report.iterations && !report.phases) return null;
  const origin = report.timeline?.origin_ns ?? 0;
  const drawn: Bars[] = [];
  const root = el("div");
  for (const of of report.bands) {
    const view = new Bars(bars(of, origin), {
      name: `time of each iteration of the ${full(of)}`,
      most: "longest rank",
      by: (bar) => bar.most,
      pressed: (i) => go(of.begin_ns[i], of.end_ns[i]),
    });
    drawn.push(view);
    root.append(el("h3", {}, full(of)), el("p", { class: "note" }, remark(of)), view.root);
  }
  if (drawn.length > 0) root.append(el("p", { class: "note" }, "Heights are means of ranks. Click a bar to see it in the timeline."));
  const table = (name: string, of: Report["iterations"], by: string): void => {
    if (!of) return;
    const view = new TableView(of, { name, elsewhere: `st-stat phases${by} --format csv` });
    const details = el("details", { class: "rows" }, el("summary", {}, `${name} as a table (${count(of.rows)})`), view.root);
    root.append(details);
  };
  table("iterations", report.iterations, "");
  table("phases", report.phases, " --by pcontrol");
  return { root, draw: () => drawn.forEach((view) => view.draw()) };
}
