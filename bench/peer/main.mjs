// This process runs one peer. The only argument is a JSON object with settings.
// When the peer is ready, it writes {} to standard output. Then it reads numbers
// of names to refresh, one per line, from standard input. It writes one line with
// the result of each refresh, and exits at the end of the input.

import { createInterface } from 'node:readline';

const settings = JSON.parse(process.argv[2]);
const { start } = await import(`./${settings.peer}.mjs`);
const peer = await start(settings);
console.log('{}');
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await peer.refresh(Number(line))));
}
await peer.close();
