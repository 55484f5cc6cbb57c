// Read the files in an everturn bundle without everturn. The format is described in docs/format.md.
//
//     node everturn_reader.mjs list BUNDLE
//     node everturn_reader.mjs cat BUNDLE PATH [VERSION]     the bytes of a file, to standard output
//     node everturn_reader.mjs verify BUNDLE                 every byte against its digest
//
// Only modules of Node.js are used.

import { createHash } from "node:crypto";
import { readFileSync, writeSync } from "node:fs";
import { inflateRawSync } from "node:zlib";

/** Return the members of a zip file by name, each as a function that reads it. */
export function readZip(data) {
  let end = data.length - 22;
  while (end >= 0 && data.readUInt32LE(end) !== 0x06054b50) end -= 1;
  if (end < 0) throw new Error("not a zip file");
  const members = new Map();
  let at = data.readUInt32LE(end + 16);
  for (let left = data.readUInt16LE(end + 10); left > 0; left -= 1) {
    if (data.readUInt32LE(at) !== 0x02014b50) throw new Error("the zip file is damaged");
    const method = data.readUInt16LE(at + 10);
    const packed = data.readUInt32LE(at + 20);
    const [nameSize, extraSize, noteSize] = [28, 30, 32].map((offset) => data.readUInt16LE(at + offset));
    const header = data.readUInt32LE(at + 42);
    const name = data.toString("utf8", at + 46, at + 46 + nameSize);
    members.set(name, () => {
      const start = header + 30 + data.readUInt16LE(header + 26) + data.readUInt16LE(header + 28);
      const bytes = data.subarray(start, start + packed);
      if (method === 0) return bytes;
      if (method !== 8) throw new Error(`${name} is compressed in an unknown way`);
      return inflateRawSync(bytes);
    });
    at += 46 + nameSize + extraSize + noteSize;
  }
  return members;
}

/** Open a bundle. */
export function openBundle(path) {
  const members = readZip(readFileSync(path));
  const read = (name) => {
    if (!members.has(name)) throw new Error(`${name} is missing`);
    return members.get(name)();
  };
  const manifest = JSON.parse(read("manifest.json").toString("utf8"));
  if (manifest.format !== "everturn-bundle@1") throw new Error(`unknown format ${manifest.format}`);
  const versions = manifest.files.flatMap((file) => file.versions.map((version) => ({ path: file.path, ...version })));
  return { manifest, versions, chunk: (digest) => read(`chunks/${digest}`) };
}

/** Return the bytes of a file: of its newest version, or of the one with this number. */
export function readFile(bundle, path, number) {
  const found = bundle.versions.filter((one) => one.path === path && (number === undefined || one.number === number));
  if (found.length === 0) throw new Error(`there is no ${path} in the bundle`);
  const newest = found.reduce((best, one) => (one.number > best.number ? one : best));
  return Buffer.concat(newest.chunks.map((chunk) => bundle.chunk(chunk.sha256)));
}

/** Return the problems: chunks that differ from their digest, versions of the wrong size. */
export function verify(bundle) {
  const problems = [];
  for (const { path, number, size, chunks } of bundle.versions) {
    let length = 0;
    for (const { sha256 } of chunks) {
      const data = bundle.chunk(sha256);
      length += data.length;
      if (createHash("sha256").update(data).digest("hex") !== sha256) {
        problems.push(`${path} (version ${number}): chunk ${sha256} is damaged`);
      }
    }
    if (length !== size) problems.push(`${path} (version ${number}): ${length} bytes instead of ${size}`);
  }
  return problems;
}

function main([command, file, path, number]) {
  if (!file || !["list", "cat", "verify"].includes(command)) {
    console.error("node everturn_reader.mjs list|cat|verify BUNDLE [PATH [VERSION]]");
    return 2;
  }
  const bundle = openBundle(file);
  if (command === "cat") {
    let data = readFile(bundle, path, number === undefined ? undefined : Number(number));
    while (data.length > 0) data = data.subarray(writeSync(1, data));
    return 0;
  }
  if (command === "list") {
    for (const one of bundle.versions) console.log(`${one.size}\t${one.number}\t${one.path}`);
    return 0;
  }
  const problems = verify(bundle);
  console.log(problems.join("\n") || "all bytes are as they were stored");
  return problems.length > 0 ? 1 : 0;
}

if (process.argv[1] && import.meta.url.endsWith(process.argv[1].split("/").pop())) {
  process.exitCode = main(process.argv.slice(2));
}
