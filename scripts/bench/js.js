// make bench, the Node side: what require() costs a fresh process, and what isTrustworthy() costs a
// caller that asks again while nothing has changed. Exits with 1 when a bound is missed.
'use strict';

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const LINES = 4900;
const module_ = path.join(__dirname, '..', 'forge', 'health.js');

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

/** Milliseconds of require() alone, in a process that has loaded nothing else. */
function requireMs() {
  const script = `const t = process.hrtime.bigint(); require(${JSON.stringify(module_)});
    console.log(Number(process.hrtime.bigint() - t) / 1e6);`;
  return Number(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }));
}

function isTrustworthyUs() {
  const state = fs.mkdtempSync(path.join(os.tmpdir(), 'forge-bench-'));
  const now = Math.floor(Date.now() / 1000);
  const line = (n) => `${now - 100 + Math.floor(n / 100)}\t0\t42\tok\tissue list\tgraphql\t1\tbench\t-\n`;
  fs.writeFileSync(path.join(state, 'observations.log'), Array.from({ length: LINES }, (_, n) => line(n)).join(''));
  process.env.BOB_FORGE_STATE = state;
  const health = require(module_);
  if (!health.isTrustworthy()) throw new Error('the bench log is operational');
  const rounds = [];
  for (let n = 0; n < 2000; n++) {
    const start = process.hrtime.bigint();
    health.isTrustworthy();
    rounds.push(Number(process.hrtime.bigint() - start) / 1e3);
  }
  fs.rmSync(state, { recursive: true });
  return median(rounds);
}

const rows = [
  ["require('health.js')", median(Array.from({ length: 15 }, requireMs)), 8, 'ms'],
  [`isTrustworthy(), ${LINES} lines`, isTrustworthyUs(), 60, 'us'],
];
let missed = false;
for (const [name, value, bound, unit] of rows) {
  const met = value < bound;
  missed ||= !met;
  console.log(`${name}: ${value.toFixed(2)} ${unit} (bound ${bound}): ${met ? 'met' : 'MISSED'}`);
}
process.exitCode = missed ? 1 : 0;
