// One peer as a process. Settings are one JSON object in the only argument. It
// says {} on standard output when it is ready, then reads lines from standard
// input: how many names to refresh. It answers each with a line, what it did.
// It ends when its input ends, so that it never outlives who started it.

import { createInterface } from 'node:readline';

const settings = JSON.parse(process.argv[2]);
const { start } = await import(`./${settings.peer}.mjs`);
const peer = await start(settings);
console.log('{}');
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await peer.refresh(Number(line))));
}
await peer.close();
