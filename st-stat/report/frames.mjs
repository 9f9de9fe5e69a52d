// How long script and layout of a frame take while a timeline is zoomed, by Chromium's trace: time of the page's main thread, so that
// what else the machine does counts little.

const TASKS = new Set(["EventDispatch", "FireAnimationFrame", "TimerFire", "FunctionCall", "UpdateLayoutTree", "Layout"]);

/** Thread time of each frame that does something, ms, by Chromium's trace, and how many frames there are. */
function perFrame(events) {
  const { pid, tid } = events.find((e) => e.name === "FireAnimationFrame") ?? {};
  const own = events.filter((e) => e.pid === pid && e.tid === tid && e.ph === "X").sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const ends = own.filter((e) => e.name === "Commit").map((e) => e.ts);
  const took = new Array(ends.length + 1).fill(0);
  let [frame, until] = [0, 0];
  for (const e of own) {
    // What a task does is in its time.
    if (!TASKS.has(e.name) || e.ts < until) continue;
    until = e.ts + e.dur;
    while (frame < ends.length && ends[frame] <= e.ts) frame++;
    took[frame] += (e.tdur ?? e.dur) / 1000;
  }
  return { took: took.filter((ms) => ms > 0.5), frames: ends.length };
}

/** Turns the wheel over a view: in, and out again. */
const turn = (page, view) =>
  page.evaluate(async (view) => {
    const { canvas } = globalThis[view];
    const box = canvas.getBoundingClientRect();
    const at = { clientX: box.x + box.width * 0.35, clientY: box.y + box.height / 2, cancelable: true, bubbles: true };
    const next = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    for (let i = 0; i < 60; i++) {
      canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: i < 30 ? -65 : 65, ...at }));
      await next();
    }
  }, view);

/** The time of script and layout, ms, in 95 of 100 frames, while the wheel is turned over a view; what it is called. */
async function measured(page, view, name) {
  await new Promise((done) => setTimeout(done, 300));
  await page.tracing.start({ categories: ["devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await turn(page, view);
  const { took, frames } = perFrame(JSON.parse(Buffer.from(await page.tracing.stop()).toString()).traceEvents);
  // A trace that has other names than these would be within any limit.
  if (frames < 50) return { ms: Infinity, name: `${name}: ${frames} frames in the browser's trace` };
  took.sort((a, b) => a - b);
  return { ms: took[Math.floor(took.length * 0.95)] ?? 0, name };
}

/** The same of logical time, all rows of which are seen. */
export async function logicalFrames(page) {
  await page.evaluate(() => {
    location.hash = "#logical";
    logicalView.show({ ...logicalView.whole, last: logicalView.rows.length });
  });
  return measured(page, "logicalView", "logical time");
}

/** The longest time of script and layout, ms, in 95 of 100 frames: of the view in which that is most, with its name. */
export async function frames(page) {
  const views = await page.evaluate(() => {
    const first = timelineView.data.windows.findIndex((w) => !w.whole);
    const all = timelineView.choices.map((by) => ({ name: by, by, window: null, rows: 1 }));
    if (first >= 0) all.push({ name: `window ${first + 1}`, by: "ranks", window: first, rows: 1 });
    return [...all, { name: "few ranks", by: "ranks", window: null, rows: 0.05 }];
  });
  let worst = { ms: 0, name: "" };
  for (const view of views) {
    await page.evaluate(({ by, window, rows }) => {
      timelineView.rowsBy(by);
      timelineView.show(timelineView.whole(window));
      timelineView.fewer(rows, 0.3);
    }, view);
    const one = await measured(page, "timelineView", view.name);
    if (one.ms === Infinity) return one;
    if (one.ms > worst.ms) worst = one;
  }
  await page.evaluate(() => {
    timelineView.rowsBy("ranks");
    timelineView.show(timelineView.whole(null));
  });
  return worst;
}
