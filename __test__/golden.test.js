'use strict';
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { classifySignal } = require('../scripts/forge/health.js');
const { root } = require('./scene.js');

test('every real failure of the golden table has its signal through the addon', () => {
  const table = (/** @type {string} */ name) =>
    fs.readFileSync(path.join(root, 'tests/golden', name), 'utf8').trimEnd().split('\n');
  assert.equal(table('signals.jsonl').length, 178);
  for (const line of [...table('signals.jsonl'), ...table('signals-more.jsonl')]) {
    const { id, exit, stderr, argv, signal, also_ok: alsoOk = [] } = JSON.parse(line);
    for (const said of [stderr, Buffer.from(stderr)]) {
      const found = classifySignal(exit, said, argv);
      assert.ok([signal, ...alsoOk].includes(found), `${id}: ${found}, not ${signal}: ${stderr}`);
    }
  }
});

test('exit 0 is ok whatever was said, and a killed call is the caller’s own', () => {
  assert.equal(classifySignal(0, 'HTTP 503'), 'ok');
  assert.equal(classifySignal(null, ''), 'other');
});
