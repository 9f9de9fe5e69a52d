// The profile by call paths: a box for each frame, as wide as the time in MPI and before it of all that it calls, callees below.

import { Stacks, Table, column } from "./data";
import { el } from "./dom";
import { count, duration, percent } from "./format";

interface Node {
  name: string;
  above: Node | null;
  below: Map<string, Node>;
  /** Computation before the calls below it, and time in them, ns; number of these. */
  computation: number;
  mpi: number;
  calls: number;
}

/** Boxes narrower than this share of the picture are left out: they are added up beside the others. */
const LEAST = 0.003;
/** Between the names of a path in the address. */
const DOWN = "\n";

const node = (name: string, above: Node | null): Node => ({ name, above, below: new Map(), computation: 0, mpi: 0, calls: 0 });

/** All call paths of the table's rows; frames that all share are left out but for the innermost of these. */
function tree(table: Table, stacks: Stacks): Node {
  const values = (key: string) => column(table, key) ?? [];
  const [functions, times, shares, before, calls] = ["function", "time_ns", "share_percent", "before_ns", "calls"].map(values);
  const paths = stacks.of.filter((path) => path.length > 0);
  let shared = 0;
  while (paths.length > 0 && paths.every((path) => path.length > shared + 1 && path[shared] === paths[0][shared])) shared++;
  const root = node(shared > 0 ? stacks.frames[paths[0][shared - 1]] : "the program", null);
  const timed = times.some((ns) => ns !== null);
  stacks.of.forEach((path, row) => {
    const names = [...path.slice(shared).map((frame) => stacks.frames[frame]), String(functions[row])];
    // What begins and ends MPI waits for the launcher, and has no share.
    const mpi = timed && shares[row] === null ? 0 : Number(times[row] ?? 0);
    let at = root;
    const add = (): void => {
      at.mpi += mpi;
      at.computation += Number(before[row] ?? 0);
      at.calls += Number(calls[row] ?? 0);
    };
    add();
    for (const name of names) {
      const next = at.below.get(name) ?? node(name, at);
      at.below.set(name, next);
      at = next;
      add();
    }
  });
  const [mpi, computation] = [table.rest.time_ns ?? 0, table.rest.before_ns ?? 0];
  if (mpi + computation > 0) {
    const others = { ...node("(call sites that are not on this page)", root), mpi, computation, calls: table.rest.calls ?? 0 };
    root.below.set(others.name, others);
    root.mpi += mpi;
    root.computation += computation;
    root.calls += others.calls;
  }
  return root;
}

export class IcicleView {
  readonly root = el("div", { class: "icicle" });
  private readonly top: Node;
  private readonly timed: boolean;
  private readonly boxes = el("div", { class: "boxes", role: "group", "aria-label": "call paths" });
  private readonly said = el("p", { class: "about", "aria-live": "polite" }, "Point at a box.");

  constructor(
    table: Table,
    stacks: Stacks,
    private readonly changed: (path: string) => void,
  ) {
    this.top = tree(table, stacks);
    this.timed = this.top.computation + this.top.mpi > 0;
    const item = (name: string, of: string): HTMLElement => el("li", {}, el("span", { class: "swatch", style: `background: var(--${of})` }), name);
    const legend = this.timed ? [item("computation before calls", "computation"), item("in MPI", "icicle")] : [item("calls", "icicle")];
    const note = this.timed
      ? "Boxes are as wide as what they call takes, of all ranks, without the time in MPI_Init and MPI_Finalize. Click a box to see it alone, and the topmost to go back."
      : "Boxes are as wide as the number of calls: the trace holds no times. Click a box to see it alone, and the topmost to go back.";
    this.root.append(el("ul", { class: "legend" }, ...legend), this.boxes, this.said, el("p", { class: "note keys" }, note));
    this.show(this.top);
  }

  private weight(of: Node): number {
    return this.timed ? of.computation + of.mpi : of.calls;
  }

  /** Shows the box that a path of names leads to. */
  open(path: string): void {
    let at = this.top;
    for (const name of path ? path.split(DOWN) : []) {
      const next = at.below.get(name);
      if (!next) break;
      at = next;
    }
    this.show(at);
  }

  private path(of: Node): string {
    const names: string[] = [];
    for (let at: Node | null = of; at?.above; at = at.above) names.unshift(at.name);
    return names.join(DOWN);
  }

  private tell(of: Node): void {
    const all = this.weight(this.top);
    const times = this.timed ? `computation ${duration(of.computation)}, in MPI ${duration(of.mpi)}, ${percent(this.weight(of), all)} of all; ` : "";
    this.said.textContent = `${of.name}: ${times}${count(of.calls)} calls`;
  }

  private show(focus: Node): void {
    const made: HTMLElement[] = [];
    const above: Node[] = [];
    for (let at: Node | null = focus; at; at = at.above) above.unshift(at);
    above.forEach((of, depth) => made.push(this.box(of, [0, 1], depth, of === focus ? of.above ?? of : of)));
    const whole = Math.max(1, this.weight(focus));
    let deepest = above.length;
    const walk = (of: Node, left: number, depth: number): void => {
      const children = [...of.below.values()].sort((a, b) => this.weight(b) - this.weight(a));
      let at = left;
      for (const child of children) {
        const wide = this.weight(child) / whole;
        if (wide < LEAST) break;
        deepest = Math.max(deepest, depth + 1);
        made.push(this.box(child, [at, wide], depth, child));
        walk(child, at, depth + 1);
        at += wide;
      }
    };
    walk(focus, 0, above.length);
    this.boxes.style.height = `${deepest * 22}px`;
    this.boxes.replaceChildren(...made);
  }

  private box(of: Node, [left, wide]: [number, number], depth: number, to: Node): HTMLElement {
    const part = this.timed ? (of.computation / Math.max(1, this.weight(of))) * 100 : 0;
    const style = `left: ${(left * 100).toFixed(3)}%; width: ${(wide * 100).toFixed(3)}%; top: ${depth * 22}px; --part: ${part.toFixed(2)}%`;
    const made = el("button", { type: "button", style, "data-computation": String(of.computation), "data-mpi": String(of.mpi), "data-calls": String(of.calls) }, of.name);
    made.addEventListener("pointerenter", () => this.tell(of));
    made.addEventListener("focus", () => this.tell(of));
    made.addEventListener("click", () => {
      this.show(to);
      this.changed(this.path(to));
      this.boxes.querySelectorAll("button")[this.path(to) === "" ? 0 : this.path(to).split(DOWN).length]?.focus();
    });
    return made;
  }
}
