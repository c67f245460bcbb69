'use strict';
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const path = require('node:path');
const test = require('node:test');
const { root } = require('./scene.js');

test('index.d.ts, the modules behind it and a typed caller agree', () => {
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const { status, stdout, stderr } = spawnSync(process.execPath, [tsc], { cwd: root, encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
});
