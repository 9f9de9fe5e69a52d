// A page that st-stat makes anew while its program runs: it says so, and loads itself again at the same address.

import { Live } from "./data";
import { button, el } from "./dom";

/** What the page must not lose by being loaded again, beside its address. */
const THEME = "st-report-theme";
const DOWN = "st-report-down";

/** Whether somebody is about to do something on the page. */
function busy(pressed: boolean): boolean {
  const at = document.activeElement;
  const typing = at instanceof HTMLInputElement || at instanceof HTMLSelectElement || at instanceof HTMLTextAreaElement;
  return pressed || typing || String(window.getSelection()) !== "";
}

/** Light or dark, and how far down, are kept for as long as the window is open. Pages from files are not allowed that everywhere. */
function keepLook(): void {
  try {
    const before = sessionStorage.getItem(THEME);
    if (before) document.documentElement.dataset.theme = before;
    const down = Number(sessionStorage.getItem(DOWN) ?? 0);
    // All is there by then.
    requestAnimationFrame(() => window.scrollTo(0, down));
    window.addEventListener("pagehide", () => {
      sessionStorage.setItem(THEME, document.documentElement.dataset.theme ?? "");
      sessionStorage.setItem(DOWN, String(window.scrollY));
    });
  } catch {
    // Then it begins at the top, as the system has it.
  }
}

/** Says what the page is of, and loads it again when a new one is due, unless it is held. */
export function live(of: Live): HTMLElement {
  // Twice as long as the next page may take, and what a slow disk adds.
  const late = 2 * of.every_ms + 15_000;
  let held = false;
  let pressed = false;
  const text = el("span", { role: "status" });
  const hold = button("hold", () => {
    held = !held;
    hold.textContent = held ? "follow" : "hold";
    hold.setAttribute("aria-pressed", String(held));
    say();
  }, { title: "do not load the page again", id: "hold", "aria-pressed": "false" });
  const say = (): void => {
    const at = new Date(of.written_ms).toLocaleTimeString();
    const age = Date.now() - of.written_ms;
    const over = !held && age > late ? `; not made anew for ${Math.round(age / 1000)} s: st-stat report --follow has ended` : "";
    text.textContent = `${of.told}, at ${at}${held ? "; held" : over}`;
  };
  keepLook();
  say();
  window.addEventListener("pointerdown", () => (pressed = true));
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => (pressed = false));
  const loaded = Date.now();
  window.setInterval(() => {
    say();
    if (!held && !busy(pressed) && Date.now() - loaded >= of.every_ms) location.reload();
  }, 1000);
  return el("p", { class: "live" }, text, " ", hold);
}
