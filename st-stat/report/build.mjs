// Puts script, style and page together: `node build.mjs TO`.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
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
// What it is made of, so that a test of st-stat sees a page that is older: a CRC-32, which gzip has at its end.
const sources = readdirSync("src").sort().map((name) => readFileSync(`src/${name}`));
const packed = gzipSync(Buffer.concat(sources));
const sum = packed.readUInt32LE(packed.length - 8).toString(16).padStart(8, "0");
const page = readFileSync("src/page.html", "utf8").replace("@SOURCES@", sum);
const [begin, end] = page.split("@SCRIPT@");
writeFileSync(to, begin.replace("@STYLE@", () => style) + script + end);
