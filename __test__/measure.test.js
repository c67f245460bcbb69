'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { budget } = require('..');
const { localForge, root } = require('./local-forge.js');
const { faults } = require('./schema.js');
const { scene } = require('./scene.js');

const budgetJs = path.join(root, 'scripts/forge/budget.js');

test('a command is measured against the forge: calls exactly, points by the two reads', async (t) => {
  const forge = await localForge(t);
  await forge.control('POST', 'seed', { issues: [{ number: 1, title: 'One' }] });
  const script = 'gh issue view 1 --json title; gh api repos/acme/widget >/dev/null; gh issue view 9; exit 3';
  const run = forge.run([process.execPath, budgetJs, 'measure', '--json', '--', 'sh', '-c', script]);
  assert.equal(run.status, 3);
  const document = JSON.parse(run.stdout);
  assert.deepEqual(faults('measure-1', document), []);
  assert.deepEqual([document.calls, document.byCommand, document.exit], [3, { 'issue view': 2, api: 1 }, 3]);
  assert.deepEqual(document.points, { graphql: 2, core: 1, search: 0 });
  assert.match(run.stderr, /\{"title":"One"\}/);
  const text = forge.run([process.execPath, budgetJs, 'measure', '--', 'sh', '-c', 'gh issue view 1 --json title']);
  assert.match(text.stdout, /^\{"title":"One"\}\nmeasured: sh -c gh issue view 1 --json title\n {2}gh calls: 1 \(issue view 1\)\n/);
});

test('a command that a signal ends, ends budget.js the same way', async (t) => {
  const forge = await localForge(t);
  const run = forge.run([process.execPath, budgetJs, 'measure', '--json', '--', 'sh', '-c', 'kill -TERM $$']);
  assert.deepEqual([run.status, run.signal, JSON.parse(run.stdout).signal], [null, 'SIGTERM', 15]);
});

test('measure() gives the same document, and a child of this process goes on being heard', async (t) => {
  const forge = await localForge(t);
  const document = budget.measure(['sh', '-c', 'gh issue list >/dev/null'], { ...forge.options, json: true });
  assert.deepEqual(faults('measure-1', document), []);
  assert.deepEqual([document.calls, document.exit], [1, 0]);
  // The local forge's own end is still seen, although measure() waited for a child of its own.
  const { spawn } = require('node:child_process');
  const child = spawn('true');
  budget.measure(['sleep', '0.2'], { ...forge.options, json: true });
  assert.equal(await new Promise((resolve) => { child.on('exit', resolve); }), 0);
});

test('what cannot be measured throws, and leaves nothing behind', (t) => {
  const { options, at } = scene(t);
  /** @type {any[]} */
  const bad = [[], 'gh issue list', undefined, [1]];
  for (const command of bad) assert.throws(() => budget.measure(command, options), { code: 'EFORGE_USAGE' });
  assert.throws(() => budget.measure(['/nowhere/command'], options), { code: 'EFORGE_USAGE' });
  const left = fs.existsSync(at('bob/forge')) ? fs.readdirSync(at('bob/forge')) : [];
  assert.deepEqual(left.filter((name) => name.startsWith('measure')), []);
});
