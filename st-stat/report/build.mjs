// Puts script, style and page together: `node build.mjs TO`.

import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const to = process.argv[2];
const made = async (entry) => {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    charset: "utf8",
    format: "iife",
    target: ["chrome80", "firefox113", "safari16.4"],
    write: false,
    legalComments: "inline",
  });
  // What ends a script or a comment in HTML must not stand in one.
  return outputFiles[0].text.trim().replace(/<\/(script|style)/gi, "<\\/$1").replace(/<!--/g, "<\\!--");
};
const [script, style] = [await made("src/main.ts"), await made("src/style.css")];
const page = readFileSync("src/page.html", "utf8");
const [begin, end] = page.split("@SCRIPT@");
writeFileSync(to, begin.replace("@STYLE@", () => style) + script + end);
