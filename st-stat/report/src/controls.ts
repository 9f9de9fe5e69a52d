// The buttons over a timeline.

import { button, el } from "./dom";
import { duration, moment } from "./format";
import { By } from "./rows";
import { TimelineView } from "./timeline";

export function controls(view: TimelineView): HTMLElement {
  const windows = el("select", { "aria-label": "what is shown" }, el("option", { value: "" }, "whole run"));
  view.data.windows.forEach((w, i) => {
    if (w.whole) return;
    const text = `window ${i + 1}: ${duration(w.to_ns - w.from_ns)} from ${moment(w.from_ns + view.data.origin_ns, (w.to_ns - w.from_ns) / 100)}`;
    windows.append(el("option", { value: String(i) }, text));
  });
  windows.addEventListener("change", () => view.show(view.whole(windows.value === "" ? null : Number(windows.value))));
  const by = el("select", { "aria-label": "what rows are" });
  for (const one of view.choices) by.append(el("option", { value: one }, `${one} as rows`));
  by.addEventListener("change", () => view.rowsBy(by.value as By));
  const press = (text: string, label: string, does: () => void): HTMLButtonElement => button(text, does, { title: label, "aria-label": label });
  const bar = el(
    "div",
    { class: "tools" },
    windows.options.length > 1 && windows,
    by.options.length > 1 && by,
    press("all", "show all (Home)", () => view.show(view.whole(view.view.window))),
    press("+", "less time (+)", () => view.zoom(0.5)),
    press("−", "more time (-)", () => view.zoom(2)),
    press("◀", "earlier (left arrow)", () => view.pan(-0.5)),
    press("▶", "later (right arrow)", () => view.pan(0.5)),
    press("fewer ranks", "fewer ranks (>)", () => view.fewer(0.5)),
    press("more ranks", "more ranks (<)", () => view.fewer(2)),
    press("ruler", "set an end of the ruler where is pointed, or take it away (m)", () => view.measure()),
    view.iterations > 0 && press("iteration", "show the next iteration (i), the one before (Shift and i)", () => view.iteration(1)),
    view.data.path.length > 0 && press("critical path", "show the critical path or not (p)", () => view.togglePath()),
  );
  bar.addEventListener("shown", () => {
    windows.value = view.view.window === null ? "" : String(view.view.window);
    by.value = view.by;
  });
  return bar;
}
