// Ranks, or groups of them: computation, MPI and waits as bars.

import { Bar, Bars } from "./bars";
import { Table, column } from "./data";
import { duration } from "./format";

function bars(table: Table): Bar[] {
  const of = (key: string): number[] | undefined => column(table, key)?.map((v) => (typeof v === "number" ? v : 0));
  const [ranks, first, last] = [of("rank"), of("first_rank"), of("last_rank")];
  const [computation, mpi, wait, most] = [of("computation_ns"), of("mpi_ns"), of("wait_ns"), of("computation_most_ns")];
  return (ranks ?? first ?? []).map((rank, i) => {
    const n = ranks || !last ? 1 : last[i] - rank + 1;
    const waits = (wait?.[i] ?? 0) / n;
    const name = n === 1 ? `rank ${rank}` : `ranks ${rank} to ${last?.[i]}, mean`;
    const [c, m] = [(computation?.[i] ?? 0) / n, (mpi?.[i] ?? 0) / n];
    const parts: Bar["parts"] = [c, Math.max(0, m - waits), waits];
    const [computes, own, waiting] = parts.map((ns) => duration(Math.round(ns)));
    return { number: rank, parts, most: most?.[i] ?? c, said: `${name}: computation ${computes}, MPI ${own}, waiting ${waiting}` };
  });
}

export const rankBars = (table: Table): Bars =>
  new Bars(bars(table), { name: "computation, MPI and waits per rank", by: (bar) => bar.parts[0] });
