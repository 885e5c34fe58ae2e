// SPDX-License-Identifier: Apache-2.0
// Bundles web/src into one HTML file with two marks that 'cuwhy report' puts data into: build.mjs PAGE.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const modules = process.env.NODE_MODULES || join(here, "node_modules");
const esbuild = createRequire(join(modules, "any.js"))("esbuild");

function bundle(entry) {
  const made = esbuild.buildSync({
    entryPoints: [join(here, "src", entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["chrome100", "firefox100", "safari15"],
    charset: "ascii",
    legalComments: "none",
    nodePaths: [modules],
    logLevel: "warning",
  });
  return made.outputFiles[0].text.trim();
}

const hash = (text) => "'sha256-" + createHash("sha256").update(text, "utf8").digest("base64") + "'";
const script = bundle("main.js");
const style = bundle("style.css");
if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error("the bundle would end its own element");

// Nothing is loaded, nothing but this one script runs, and nothing is ever parsed as markup.
const policy = [
  "default-src 'none'",
  "script-src " + hash(script),
  "style-src " + hash(style),
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
const licence = readFileSync(join(modules, "uplot", "LICENSE"), "utf8")
  .replace(/--/g, "- -")
  .trim();
const parts = { policy, style, script, licence: "uPlot draws the charts of this page.\n\n" + licence };
const page = readFileSync(join(here, "src", "page.html"), "utf8").replace(
  /%(\w+)%/g,
  (all, name) => parts[name] ?? all,
);
writeFileSync(process.argv[2], page);
