// The page: its views, and their addresses.

import { changes } from "./changes";
import { controls } from "./controls";
import { Report, Spot, Table, Timeline, Window, column, decode, number } from "./data";
import { button, el } from "./dom";
import { efficiency } from "./efficiency";
import { findings } from "./findings";
import { bytes, count, duration, shown } from "./format";
import { GridView } from "./grid";
import { IcicleView } from "./icicle";
import { iterations } from "./iterations";
import { kept } from "./kept";
import { live } from "./live";
import { loops } from "./loops";
import { LogicalView, logicalControls } from "./logical";
import { MatrixView, noMessages } from "./matrix";
import { Part } from "./moved";
import { rankBars } from "./ranks";
import * as route from "./route";
import { boxes } from "./spread";
import { State, TableView } from "./table";
import { Seen, TimelineView } from "./timeline";

interface View {
  name: string;
  title: string;
  root: HTMLElement;
  draw?: () => void;
  open?: (of: Record<string, string>) => void;
}

function theme(): HTMLElement {
  const wished = (): string => document.documentElement.dataset.theme ?? "";
  const made = button("", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = wished() || (dark ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
    window.dispatchEvent(new Event("resize"));
  });
  made.textContent = "light / dark";
  made.title = "light or dark (d)";
  made.id = "theme";
  return made;
}

function facts(report: Report): HTMLElement {
  const of = report.summary;
  const fact = (name: string, key: string, text?: string): HTMLElement | null => {
    const value = column(of, key)?.[0];
    if (value === null || value === undefined || value === "") return null;
    const made = el("dd", typeof value === "number" ? { "data-key": key, "data-value": String(value), title: String(value) } : {});
    made.textContent = text ?? shown(key, value);
    return el("div", {}, el("dt", {}, name), made);
  };
  const world = number(of, "world");
  const ranks = number(of, "ranks");
  return el(
    "dl",
    { class: "facts" },
    fact("ranks", "ranks", ranks === world ? undefined : `${count(ranks ?? 0)} of ${count(world ?? 0)}`),
    fact("hosts", "hosts"),
    fact("time per rank", "rank_time_mean_ns"),
    fact("in MPI", "mpi_percent"),
    fact("calls", "calls"),
    fact("sent", "sent_bytes"),
    fact("MPI", "mpi", `${String(column(of, "mpi")?.[0] ?? "")} ${String(column(of, "mpi_version")?.[0] ?? "")}`),
    fact("times", "times"),
  );
}

/** Notes a part of what is seen in a view in its address. */
function noting(view: string, state: Record<string, string>): (part: Record<string, string | undefined>) => void {
  let of: Record<string, string> = { ...state };
  return (part) => {
    of = Object.fromEntries(Object.entries({ ...of, ...part }).filter(([, value]) => value)) as Record<string, string>;
    route.note({ view, of });
  };
}

/** A view of one table, whose order and search are part of its address. */
function tabular(name: string, table: Table, caption: string, elsewhere: string, state: Record<string, string>, note = noting(name, state)): TableView {
  return new TableView(table, { name: caption, elsewhere, state: state as State, changed: (now) => note({ ...now }) });
}

function seen(of: Record<string, string>, whole: Seen): Seen {
  const value = (key: string, other: number): number => (of[key] !== undefined && Number.isFinite(Number(of[key])) ? Number(of[key]) : other);
  return { window: whole.window, from: value("from", whole.from), to: value("to", whole.to), first: value("first", whole.first), last: value("last", whole.last) };
}

const ranksOf = (spot: Spot): number[] => (spot.for_rank === null ? [spot.rank] : [spot.rank, spot.for_rank]);

/** The window of single calls that has most of a finding's time and all of its ranks; −1, if none has its end. */
function windowOf(data: Timeline, spot: Spot): number {
  const part = (w: Window): number => Math.min(w.to_ns, spot.to_ns) - Math.max(w.from_ns, spot.from_ns);
  const fits = (w: Window): boolean => !w.whole && w.from_ns <= spot.to_ns && w.to_ns >= spot.to_ns && ranksOf(spot).every((rank) => w.lanes.some((l) => l.rank === rank));
  return data.windows.reduce((best, w, i) => (fits(w) && (best < 0 || part(w) > part(data.windows[best])) ? i : best), -1);
}

function timelineView(report: Report): (View & { time: (from: number, to: number) => void }) | null {
  const data = report.timeline;
  if (!data) return null;
  const height = (): number => Math.max(260, Math.min(window.innerHeight - 330, 900));
  const view: TimelineView = new TimelineView(data, {
    height,
    bands: report.bands,
    changed: (now) => {
      bar.dispatchEvent(new Event("shown"));
      const of: Record<string, string> = { from: now.from.toFixed(0), to: now.to.toFixed(0), first: now.first.toFixed(2), last: now.last.toFixed(2) };
      if (now.window !== null) of.window = String(now.window);
      if (view.by !== "ranks") of.rows = view.by;
      if (view.ruler.length === 2) of.ruler = view.ruler.map((time) => time.toFixed(0)).join("..");
      route.note({ view: "timeline", of });
    },
  });
  const bar = controls(view);
  const spots = data.spots;
  let last = -1;
  const go = (finding: number): void => {
    const spot = spots.find((s) => s.finding === finding);
    if (!spot) return;
    last = spots.indexOf(spot);
    view.rowsBy("ranks");
    const beside = Math.max((spot.to_ns - spot.from_ns) / 2, 500);
    const inside = windowOf(data, spot);
    const whole = view.whole(inside >= 0 ? inside : null);
    const all = inside >= 0 ? [...new Set(data.windows[inside].lanes.map((l) => l.rank))] : null;
    const rows = ranksOf(spot).map((rank) => (all ? all.indexOf(rank) : rank)).filter((row) => row >= 0);
    const [first, until] = [Math.max(0, Math.min(...rows) - 4), Math.max(...rows) + 5];
    view.show({ ...whole, from: spot.from_ns - beside, to: spot.to_ns + beside, first, last: until });
  };
  if (spots.length > 0) {
    const next = button("next finding", () => go(spots[(last + 1) % spots.length].finding), { title: "next finding (n)", id: "next" });
    bar.append(next);
  }
  const keys = "Arrows move, + and − zoom, < and > change the number of ranks, Home shows all, i the next iteration, p the critical path or not, m sets an end of a ruler where is pointed; drag, wheel and two fingers work, too (wheel with Shift moves, with Ctrl changes the number of ranks).";
  const root = el("section", {}, bar, view.root, el("p", { class: "note keys" }, keys));
  const open = (of: Record<string, string>): void => {
    if (of.finding !== undefined && spots.some((s) => s.finding === Number(of.finding))) return go(Number(of.finding));
    const window = of.window !== undefined && data.windows[Number(of.window)] ? Number(of.window) : null;
    view.rowsBy(view.choices.find((by) => by === of.rows) ?? "ranks");
    const ends = of.ruler?.split("..").map(Number) ?? [];
    view.ruler = ends.length === 2 && ends.every(Number.isFinite) ? ends : [];
    view.show(seen(of, view.whole(window)));
  };
  // For the script that looks at the page in a browser.
  Object.assign(globalThis, { timelineView: view });
  return { name: "timeline", title: "Timeline", root, draw: () => view.draw(), open, time: (from, to) => view.go(from, to) };
}

/** What ranks do in the order of the program, where there is no timeline. */
function logicalView(report: Report): View | null {
  const data = report.logical;
  if (!data) return null;
  const view: LogicalView = new LogicalView(data, {
    height: () => Math.max(260, Math.min(window.innerHeight - 330, 900)),
    changed: ({ from, to, first, last }) => {
      route.note({ view: "logical", of: { from: from.toFixed(0), to: to.toFixed(0), first: first.toFixed(2), last: last.toFixed(2) } });
    },
  });
  const table = new TableView(data.boxes, { name: "loops and calls in logical time", elsewhere: "st-stat timeline --format csv" });
  const keys = "Arrows move, + and − zoom, < and > change the number of rows, Home shows all, i the next loop; drag and wheel work, too (wheel with Shift moves, with Ctrl changes the number of rows); a double click shows a loop or a call.";
  const root = el("section", {}, el("h2", {}, "Logical time"), logicalControls(view), view.root, el("p", { class: "note keys" }, keys), el("h2", {}, "Loops and calls"), table.root);
  // For the script that looks at the page in a browser.
  Object.assign(globalThis, { logicalView: view });
  const value = (of: Record<string, string>, key: keyof Part): number => (of[key] !== undefined && Number.isFinite(Number(of[key])) ? Number(of[key]) : view.whole[key]);
  const open = (of: Record<string, string>): void => view.show({ from: value(of, "from"), to: value(of, "to"), first: value(of, "first"), last: value(of, "last") });
  return { name: "logical", title: "Logical time", root, draw: () => view.draw(), open };
}

function overview(report: Report, to: (route: route.Route) => void): View {
  const [first, others] = findings(report);
  const root = el("section", {}, el("h2", {}, "Why is it slow?"), first);
  if (!report.timeline) {
    const small = report.logical && new LogicalView(report.logical, { height: () => 220, small: true, pressed: () => to({ view: "logical", of: {} }) });
    if (small) root.append(el("h2", {}, "The whole run, in logical time"), small.root);
    if (others) root.append(others);
    return { name: "findings", title: "Findings", root, draw: () => small?.draw() };
  }
  const { run_ns: run } = report.timeline;
  const small = new TimelineView(report.timeline, {
    height: () => Math.max(180, Math.min(320, (report.timeline?.levels.rows ?? 1) * 24 + 30)),
    small: true,
    pressed: (at) => to({ view: "timeline", of: { from: String(Math.round(at - run / 20)), to: String(Math.round(at + run / 20)) } }),
  });
  root.append(el("h2", {}, "The whole run"), small.root);
  if (others) root.append(others);
  return { name: "findings", title: "Findings", root, draw: () => small.draw() };
}

function views(report: Report, to: (route: route.Route) => void): View[] {
  const timeline = timelineView(report);
  const all: (View | null)[] = [overview(report, to), timeline, logicalView(report)];
  const state = route.read();
  const of = (name: string): Record<string, string> => (state.view === name ? state.of : {});
  if (report.sites && report.functions) {
    const note = noting("sites", of("sites"));
    const sites = tabular("sites", report.sites, "calls per call site", "st-stat calls --sites --format csv", of("sites"), note);
    const paths = report.stacks ? new IcicleView(report.sites, report.stacks, (path) => note({ path })) : null;
    const functions = new TableView(report.functions, { name: "calls per function", elsewhere: "st-stat calls --functions" });
    const above = paths ? [el("h2", {}, "Call paths"), paths.root] : [];
    const tables = [...above, el("h2", {}, "Call sites"), sites.root, el("h2", {}, "Functions"), functions.root];
    if (report.spread && report.spread.rows > 0) {
      const picture = { title: "shortest to longest", of: boxes(report.spread) };
      const spread = new TableView(report.spread, { name: "distributions per call site", elsewhere: "st-stat calls --spread", picture });
      tables.push(el("h2", {}, "Distributions"), spread.root);
    }
    all.push({
      name: "sites",
      title: "Call sites",
      root: el("section", {}, ...tables),
      open: (at) => {
        paths?.open(at.path ?? "");
        sites.open(at);
      },
    });
  }
  const bars = rankBars(report.ranks);
  const ranks = tabular("ranks", report.ranks, "time per rank", "st-stat ranks --format csv", of("ranks"));
  const grid = GridView.fits(report) ? new GridView(report) : null;
  const below = grid ? el("div", { class: "beside" }, grid.root, ranks.root) : ranks.root;
  const draw = (): void => {
    bars.draw();
    grid?.draw();
  };
  all.push({ name: "ranks", title: "Ranks", root: el("section", {}, el("h2", {}, "Ranks"), bars.root, below), draw, open: (at) => ranks.open(at) });
  if (report.matrix?.from.length === 0) {
    all.push({ name: "messages", title: "Messages", root: el("section", {}, el("h2", {}, "Who talks to whom"), noMessages(number(report.summary, "sent_bytes"))) });
  } else if (report.matrix) {
    const square = new MatrixView(report.matrix);
    const pairs = tabular("messages", report.matrix.pairs, "pairs of ranks", "st-stat matrix --format csv", of("messages"));
    const root = el("section", {}, el("h2", {}, "Who talks to whom"), el("div", { class: "beside" }, square.root, pairs.root));
    all.push({ name: "messages", title: "Messages", root, draw: () => square.draw() });
  }
  if (report.efficiency) {
    const root = el("section", {}, el("h2", {}, "Efficiency"), efficiency(report.efficiency));
    if (report.waits) root.append(el("h2", {}, "Wait states"), new TableView(report.waits, { name: "wait states" }).root);
    all.push({ name: "efficiency", title: "Efficiency", root });
  }
  const over = iterations(report, (from, to_ns) => {
    to({ view: "timeline", of: {} });
    timeline?.time(from, to_ns);
  });
  if (report.structure.length > 0) {
    const root = el("section", {}, over && el("h2", {}, "Iterations and phases"), over && over.root, el("h2", {}, "Loops and calls"), loops(report.structure));
    all.push({ name: "loops", title: "Loops", root, draw: over?.draw });
  }
  if (report.against) {
    const table = tabular("changes", report.against.changes, "changes per call site", "st-stat diff --time --format csv", of("changes"));
    const root = el("section", {}, el("h2", {}, "What has changed"), changes(report.against), table.root);
    all.push({ name: "changes", title: "Changes", root });
  }
  if (report.kept) all.push({ name: "trace", title: "Trace", ...kept(report.kept, report.against?.violations ?? null) });
  return all.filter((view): view is View => view !== null);
}

function start(report: Report): void {
  const root = document.getElementById("report");
  if (!root) return;
  let all: View[] = [];
  let now: View | undefined;
  const show = ({ view: name, of }: route.Route): void => {
    now = all.find((view) => view.name === name) ?? all[0];
    for (const view of all) view.root.classList.toggle("hidden", view !== now);
    for (const tab of tabs.querySelectorAll("a")) {
      if (tab.hash === `#${now.name}`) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    now.open?.(of);
    now.draw?.();
  };
  const to = (at: route.Route): void => {
    history.pushState(null, "", route.text(at));
    show(at);
  };
  all = views(report, to);
  const tabs = el("nav", { "aria-label": "views" }, ...all.map((view, i) => el("a", { href: `#${view.name}`, title: `${view.title} (${i + 1})` }, view.title)));
  const lacks = report.lacks.length > 0 ? el("ul", { class: "lacks", "aria-label": "what is not known" }, ...report.lacks.map((text) => el("li", {}, text))) : null;
  const size = number(report.summary, "file_bytes");
  root.replaceChildren(
    el("header", {}, el("h1", {}, report.program || "a run"), theme(), report.live && live(report.live), facts(report), lacks, tabs),
    el("main", {}, ...all.map((view) => view.root)),
    el("footer", {}, `${report.made_by}${size === undefined ? "" : ` · trace of ${bytes(size)}`}${report.timeline ? ` · run of ${duration(report.timeline.run_ns)}` : ""}`),
  );
  window.addEventListener("hashchange", () => show(route.read()));
  window.addEventListener("popstate", () => show(route.read()));
  window.addEventListener("resize", () => now?.draw?.());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => now?.draw?.());
  window.addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    all.forEach((view) => view.draw?.());
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    now?.draw?.();
  });
  document.addEventListener("keydown", (e) => {
    if (e.target instanceof HTMLInputElement || e.ctrlKey || e.metaKey || e.altKey) return;
    const view = all[Number(e.key) - 1];
    if (view) to({ view: view.name, of: {} });
    else if (e.key === "d") document.getElementById("theme")?.click();
    else if (e.key === "n" && document.getElementById("next")) {
      if (now?.name !== "timeline") to({ view: "timeline", of: {} });
      document.getElementById("next")?.click();
    }
  });
  show(route.read());
  document.documentElement.dataset.ready = "1";
}

const data = document.getElementById("data");
decode(data?.textContent ?? "")
  .then(start)
  .catch((error: unknown) => {
    const why = typeof DecompressionStream === "undefined" ? "This browser is too old: Chrome 80, Firefox 113 or Safari 16.4 is needed." : String(error);
    document.getElementById("report")?.replaceChildren(el("p", { class: "lacks" }, `The data cannot be shown. ${why}`));
  });
