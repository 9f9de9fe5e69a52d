// Looks at pages in Chromium: `node check.mjs CHROMIUM ST_STAT PICTURES TRACE PAGE AGAINST [...]`, AGAINST
// being the trace that the page compares with, or -. Fails if a page asks the network
// for anything, says anything on the console, or shows a number that st-stat does not print of the trace.

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";
import { frames, logicalFrames } from "./frames.mjs";

const [chromium, stat, pictures, ...three] = process.argv.slice(2);
const SIZES = [["desktop", 1280, 800], ["projector", 1920, 1080], ["phone", 390, 844]];
const VIEWS = ["findings", "timeline", "logical", "sites", "ranks", "messages", "efficiency", "loops", "changes", "trace"];
let failed = 0;

function check(what, holds, detail = "") {
  if (holds) return;
  failed += 1;
  console.error(`report-check: ${what}${detail ? `: ${detail}` : ""}`);
}

/** Rows of a command's JSON, or none if it cannot tell of this trace. */
function json(command, ...traces) {
  try {
    const out = execFileSync(stat, [...command, "--format", "json", "-q", ...traces], { encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "ignore"] });
    return out.split("\n").filter((line) => line).map((line) => JSON.parse(line));
  } catch {
    return null;
  }
}

/** Numbers of a table as they are shown, by the keys of its columns, with all rows; which table of a view, or what it is called. */
const shownTable = (page, view, index) =>
  page.evaluate(
    ([view, index]) => {
      const section = [...document.querySelectorAll("main > section")][view];
      const tables = [...section.querySelectorAll(".table")];
      const root = typeof index === "number" ? tables[index] : tables.find((table) => table.querySelector("caption").textContent === index);
      if (!root) return [];
      const more = root.querySelector(".more");
      while (!more.hidden) more.click();
      const value = (cell) => (cell.dataset.value === undefined ? null : Number(cell.dataset.value));
      const of = (row) => Object.fromEntries([...row.querySelectorAll("[data-key]")].map((cell) => [cell.dataset.key, value(cell)]));
      return [...root.querySelectorAll("tbody tr")].map(of);
    },
    [view, index],
  );

function same(what, shown, printed) {
  if (!printed) return;
  check(`${what}: rows`, shown.length === printed.length, `${shown.length} on the page, ${printed.length} printed`);
  // One number of each table is enough to look for what is wrong.
  for (const [i, row] of printed.slice(0, shown.length).entries()) {
    const wrong = Object.entries(row).find(([key, value]) => typeof value === "number" && shown[i][key] !== value);
    check(`${what}, row ${i}`, !wrong, wrong && `${wrong[0]} is ${shown[i][wrong[0]]} on the page, ${wrong[1]} printed`);
    if (wrong) break;
  }
}

async function numbers(page, trace, against, views) {
  const at = (name) => views.indexOf(name);
  const tables = [["logical", 0, ["timeline", "--rows", "64"]], ["sites", 0, ["calls", "--sites"]], ["sites", 1, ["calls"]], ["sites", 2, ["calls", "--spread"]], ["ranks", 0, ["ranks"]], ["efficiency", 0, ["waits"]], ["loops", "iterations", ["phases"]], ["loops", "phases", ["phases", "--by", "pcontrol"]], ["changes", 0, ["diff", "--time"]],
    ["trace", "bytes by frame", ["sizes"]], ["trace", "bytes by call site", ["sizes", "--by", "site"]], ["trace", "bytes by parameter", ["sizes", "--by", "parameter"]],
    ["trace", "violations", ["violations"]], ["trace", "violated pairs", ["violations", "--pairs"]]];
  let compared = 0;
  for (const [view, index, command] of tables) {
    if (at(view) < 0) continue;
    const traces = view === "changes" ? [against, trace] : [trace];
    const [shown, printed] = [await shownTable(page, at(view), index), json(command, ...traces)];
    check(`${command.join(" ")} is shown`, shown.length > 0 || !printed?.length);
    if (printed && shown.length === printed.length) compared += printed.length;
    // What is grouped or cut short is compared by the tests of st-stat.
    if (printed && printed.length <= 4096) same(command.join(" "), shown, printed);
  }
  if (at("messages") >= 0) {
    const sorted = (rows) => rows.map((r) => `${r.from_rank} ${r.to_rank} ${r.messages} ${r.sent_bytes} ${r.fetched_bytes}`).sort();
    const printed = (json(["matrix"], trace) ?? []).filter((row) => row.to_rank !== null);
    const shown = await shownTable(page, at("messages"), 0);
    if (printed.length <= 4096) check("matrix", JSON.stringify(sorted(shown)) === JSON.stringify(sorted(printed)));
    compared += shown.length;
  }
  const why = json(["why"], trace) ?? [];
  const costs = await page.$$eval(".findings .cost[data-key=cost_ns]", (all) => all.map((e) => Number(e.dataset.value)));
  const printed = why.map((row) => row.cost_ns).filter((ns) => ns > 0);
  check("why", JSON.stringify(costs) === JSON.stringify(printed), `${costs} on the page, ${printed} printed`);
  const efficiency = json(["efficiency"], trace);
  if (efficiency && at("efficiency") >= 0) {
    const all = await page.$$eval(".efficiency [data-value]", (list) => list.map((e) => Number(e.dataset.value)));
    for (const row of efficiency) if (row.value !== null) check(`efficiency: ${row.measure}`, all.includes(row.value), `${row.value} is not in ${all}`);
  }
  return compared + costs.length;
}

/** What sentences say: of how many call sites findings are, whether all is well, that there are no messages, and what is not sure. */
async function sentences(page, trace, against, views) {
  const texts = (selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));
  const why = json(["why"], trace);
  const lacks = await texts(".lacks li");
  if (why) {
    const items = await texts(".findings li");
    for (const [i, row] of why.entries()) {
      const item = items[i] ?? "it is not there";
      check(`finding ${i} says what st-stat why says`, item.includes(row.what) && item.includes(row.told), item);
    }
    const linked = await page.$$eval(".findings li", (all) => all.filter((li) => li.querySelector("a.show")).length);
    check("each finding has a link", linked === why.length, `${linked} of ${why.length}`);
    const well = (await texts(".findings > p")).join(" ");
    check("all is well", well.includes("All is well") === (why.length === 0 && lacks.length === 0), well);
    check("nothing of what is there", well.includes("Nothing of what is there") === (why.length === 0 && lacks.length > 0), well);
  }
  const ended = (json([], trace) ?? [])[0]?.ended_early_ranks ?? 0;
  check("ranks that ended early", lacks.some((text) => text.startsWith("ended early: ")) === ended > 0, lacks.join("; "));
  const section = async (view) => (views.includes(view) ? (await texts("main > section"))[views.indexOf(view)] : null);
  const messages = await section("messages");
  const pairs = (json(["matrix"], trace) ?? []).filter((row) => row.to_rank !== null).length;
  if (messages !== null) check("no messages", messages.includes("There are no messages between pairs of ranks.") === (pairs === 0), messages.slice(0, 200));
  const changes = await section("changes");
  if (changes === null) return;
  const verdicts = (json(["diff", "--time"], against, trace) ?? []).map((row) => row.verdict);
  const count = (of) => verdicts.filter((verdict) => of.includes(verdict)).length;
  const [found, unsure] = [count(["slower", "faster", "new", "gone"]), count(["unsure"])];
  check("what is not sure", changes.includes(`Of ${unsure} call site`) === (found === 0 && unsure > 0), changes.slice(0, 300));
  const bars = await page.$$eval("ol.changes li", (all) => all.length);
  check("changes are drawn", bars === Math.min(24, found > 0 ? found : unsure), `${bars} of ${found} and ${unsure} unsure`);
}

/** Call paths: the topmost box has all times of all call sites, each box at least what those below it have, and an address. */
async function paths(page, trace) {
  await page.evaluate(() => (location.hash = "#sites"));
  const boxes = () => page.$$eval(".icicle .boxes button", (all) => all.map((b) => ["computation", "mpi", "calls"].map((key) => Number(b.dataset[key]))));
  const all = await boxes();
  const rows = json(["calls", "--sites"], trace) ?? [];
  const timed = rows.some((row) => row.time_ns !== null);
  const sum = (of) => rows.reduce((all, row) => all + of(row), 0);
  const mpi = sum((row) => (timed && row.share_percent === null ? 0 : row.time_ns ?? 0));
  const whole = [sum((row) => row.before_ns ?? 0), mpi, sum((row) => row.calls)];
  if (rows.length > 0 && rows.length <= 4096) check("call paths", JSON.stringify(all[0]) === JSON.stringify(whole), `${all[0]} on the page, ${whole} printed`);
  if (all.length < 2) return;
  await page.focus(".icicle .boxes button:nth-child(2)");
  await page.keyboard.press("Enter");
  await new Promise((done) => setTimeout(done, 300));
  check("a call path has an address", (await page.evaluate(() => location.hash)).startsWith("#sites&path="));
  check("a call path is shown alone", (await boxes())[1].every((n, i) => n === all[1][i]));
  await page.keyboard.press("Enter");
  await new Promise((done) => setTimeout(done, 300));
  check("all call paths are shown again", (await boxes()).length === all.length);
}

/** Who computes most of many ranks has a row of its own; and where ranks share rows, fewer do where few are looked at. */
async function many(page) {
  const { count, group } = await page.evaluate(() => timelineView.data.levels);
  if (count <= 32) return;
  const alone = await page.evaluate(() => timelineView.data.extremes.ranks);
  const ranks = await page.evaluate(() => {
    const columns = [...document.querySelectorAll("main > section")].flatMap((s) => [...s.querySelectorAll("tr")]);
    const value = (row, key) => Number(row.querySelector(`[data-key=${key}]`)?.dataset.value);
    return columns.map((row) => [value(row, "rank"), value(row, "computation_ns")]).filter(([rank, ns]) => Number.isFinite(rank) && Number.isFinite(ns));
  });
  const most = ranks.reduce((a, b) => (b[1] > a[1] ? b : a), [0, -1])[0];
  if (ranks.length >= count) check("who computes most has a row of its own", alone.includes(most), `rank ${most} is not among ${alone}`);
  if (group === 1) return;
  const said = () => page.$eval("section:not(.hidden) .timeline .note", (e) => e.textContent);
  await page.evaluate(() => (location.hash = "#timeline"));
  await page.evaluate(() => timelineView.show({ ...timelineView.whole(null), first: 0, last: 20 }));
  await new Promise((done) => setTimeout(done, 300));
  check("few ranks of many do not share rows", !(await said()).includes(`sums per ${group} ranks`), await said());
  await page.evaluate(() => timelineView.show(timelineView.whole(null)));
  await new Promise((done) => setTimeout(done, 300));
  check("it is said that ranks share rows", (await said()).includes("share"), await said());
}

/** Logical time: what is in a loop fills it, and all together the row; by keyboard, with an address. */
async function logical(page) {
  const wrong = await page.evaluate(() => {
    const sum = (boxes) => boxes.reduce((all, box) => all + box.wide, 0);
    const inside = (row, i, depth) => {
      const after = row.boxes.slice(i + 1);
      const end = after.findIndex((box) => box.depth <= row.boxes[i].depth);
      return (end < 0 ? after : after.slice(0, end)).filter((box) => box.depth === depth);
    };
    const fits = (row) => sum(row.boxes.filter((box) => box.depth === 0)) === row.wide && row.boxes.every((box, i) => !box.loop || sum(inside(row, i, box.depth + 1)) === box.wide);
    return logicalView.rows.flatMap((row, i) => (fits(row) ? [] : [i]));
  });
  check("bodies fill their loops", wrong.length === 0, `not in rows ${wrong}`);
  await page.evaluate(() => (location.hash = "#logical"));
  await page.focus("section:not(.hidden) canvas");
  const width = () => page.evaluate(() => logicalView.view.to - logicalView.view.from);
  const before = await width();
  await page.keyboard.press("+");
  check("logical time: key +", (await width()) < before);
  await new Promise((done) => setTimeout(done, 300));
  check("logical time: the address tells what is seen", (await page.evaluate(() => location.hash)).startsWith("#logical&from="));
  await page.keyboard.press("Home");
  check("logical time: key Home", (await width()) === before);
  if (await page.evaluate(() => logicalView.rows[0].depth > 0)) {
    await page.keyboard.press("i");
    const about = await page.$eval("section:not(.hidden) .logical .about", (e) => e.textContent);
    check("logical time: key i tells of a loop", /: loop ×/.test(about), about);
    await page.keyboard.press("Home");
  }
}

async function keyboard(page, views) {
  for (let i = 0; i < views.length; i++) {
    await page.keyboard.press(String(i + 1));
    const now = await page.$eval("nav a[aria-current]", (a) => a.hash.slice(1));
    check(`key ${i + 1}`, now === views[i], `it shows ${now}`);
  }
  if (!views.includes("timeline")) return;
  await page.keyboard.press("2");
  await page.focus("section:not(.hidden) canvas");
  const width = () => page.evaluate(() => timelineView.view.to - timelineView.view.from);
  const before = await width();
  await page.keyboard.press("+");
  check("key +", (await width()) < before);
  await new Promise((done) => setTimeout(done, 300));
  check("the address tells what is seen", (await page.evaluate(() => location.hash)).startsWith("#timeline&from="));
  await page.keyboard.press("Home");
  check("key Home", (await width()) === before);
  const box = await (await page.$("section:not(.hidden) canvas")).boundingBox();
  for (const part of [0.75, 0.5]) {
    await page.mouse.move(box.x + 58 + (box.width - 58) * part, box.y + box.height / 2);
    await page.keyboard.press("m");
  }
  await new Promise((done) => setTimeout(done, 300));
  const [a, b] = await page.evaluate(() => timelineView.ruler);
  check("the ruler is a quarter of what is seen", Math.abs((a - b) / before - 0.25) < 0.002, `${b} to ${a} of ${before}`);
  check("the ruler is said", (await page.$eval("section:not(.hidden) .timeline .note", (e) => e.textContent)).includes("ruler: "));
  const hash = await page.evaluate(() => location.hash);
  check("the ruler has an address", /&ruler=\d+\.\.\d+$/.test(hash), hash);
  await page.keyboard.press("m");
  check("the ruler is taken away", await page.evaluate(() => timelineView.ruler.length === 0));
  for (const by of ["nodes", "clusters"]) {
    if (!(await page.evaluate((by) => timelineView.choices.includes(by), by))) continue;
    await page.select('select[aria-label="what rows are"]', by);
    await new Promise((done) => setTimeout(done, 300));
    check(`${by} as rows have an address`, (await page.evaluate(() => location.hash)).endsWith(`&rows=${by}`));
    await page.evaluate(() => (location.hash = "#timeline"));
    await new Promise((done) => setTimeout(done, 100));
    check("ranks are rows again", (await page.evaluate(() => timelineView.by)) === "ranks");
    await page.focus("section:not(.hidden) canvas");
  }
  if ((await page.evaluate(() => timelineView.iterations)) < 2) return;
  // The one in the middle may be the first, or the last.
  const seen = () => page.evaluate(() => [timelineView.view.from, timelineView.view.to]);
  const pressed = async (key) => (await page.keyboard.press(key), await seen());
  const first = await pressed("i");
  check("key i", first[1] - first[0] < before, `${first} of ${before}`);
  const next = await pressed("i");
  if (next[0] !== first[0]) check("keys i and I", next[0] > first[0] && String(await pressed("I")) === String(first), `${first}, ${next}, ${await seen()}`);
  else check("key I", (await pressed("I"))[0] < first[0], String(first));
  await page.keyboard.press("Home");
}

const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"] });
mkdirSync(pictures, { recursive: true });
for (let i = 0; i + 2 < three.length; i += 3) {
  const [trace, file] = three.slice(i, i + 2).map((path) => resolve(path));
  const against = three[i + 2] === "-" ? null : resolve(three[i + 2]);
  const name = basename(file, ".html");
  const page = await browser.newPage();
  page.on("request", (request) => check(`${name}: asks for ${request.url().slice(0, 80)}`, /^(file|data):/.test(request.url())));
  page.on("console", (message) => check(`${name}: console`, false, message.text()));
  page.on("pageerror", (error) => check(`${name}: error`, false, error.message));
  await page.setViewport({ width: 1280, height: 800 });
  const began = Date.now();
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction(() => document.documentElement.dataset.ready === "1", { timeout: 20000 });
  const ready = Date.now() - began;
  const views = await page.$$eval("nav a", (all) => all.map((a) => a.hash.slice(1)));
  check(`${name}: views`, views.every((view) => VIEWS.includes(view)));
  check(`${name}: changes`, views.includes("changes") === (against !== null));
  const compared = await numbers(page, trace, against, views);
  await sentences(page, trace, against, views);
  if (views.includes("sites")) await paths(page, trace);
  if (views.includes("timeline")) await many(page);
  check(`${name}: a timeline of one kind`, views.includes("timeline") !== views.includes("logical"));
  if (views.includes("logical")) await logical(page);
  await keyboard(page, views);
  const slow = await (views.includes("timeline") ? frames(page) : logicalFrames(page));
  check(`${name}: frames while zooming`, slow.ms <= 16, `script and layout take ${slow.ms.toFixed(1)} ms in 95 % of frames (${slow.name})`);
  for (const [size, width, height] of SIZES) {
    for (const scheme of ["light", "dark"]) {
      await page.setViewport({ width, height });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      for (const view of views) {
        await page.evaluate((view) => (location.hash = `#${view}`), view);
        await new Promise((done) => setTimeout(done, 120));
        const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        check(`${name}: ${view} is too wide at ${size}`, over <= 0, `by ${over} pixels`);
        await page.screenshot({ path: join(pictures, `${name}-${view}-${size}-${scheme}.png`) });
      }
      if (views.includes("timeline") && scheme === "light" && (await page.$("#next"))) {
        await page.evaluate(() => (location.hash = "#timeline"));
        await page.evaluate(() => document.getElementById("next").click());
        await new Promise((done) => setTimeout(done, 200));
        await page.screenshot({ path: join(pictures, `${name}-finding-${size}.png`) });
      }
    }
  }
  await page.pdf({ path: join(pictures, `${name}.pdf`), format: "A4" });
  console.log(`${name}: ${views.length} views, ${compared} rows equal, ready in ${ready} ms, 95 % of frames within ${slow.ms.toFixed(1)} ms (${slow.name})`);
  await page.close();
}
await browser.close();
process.exit(failed > 0 ? 1 : 0);
