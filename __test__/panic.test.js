'use strict';
// What a panic of the engine becomes is seen on a build of its own, which exports one function that panics;
// the shipped addon has none.
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { root, scene } = require('./scene.js');

test('a panic is an Error with a code, says nothing on stderr, and the process goes on', (t) => {
  const target = path.resolve(root, process.env.CARGO_TARGET_DIR || 'target');
  const build = ['build', '--quiet', '-p', 'forge-bindings', '--features', 'defect'];
  const built = spawnSync('cargo', build, { cwd: root, encoding: 'utf8' });
  assert.equal(built.status, 0, built.stderr);
  const { at, options } = scene(t);
  const library = process.platform === 'darwin' ? 'libforge_bindings.dylib' : 'libforge_bindings.so';
  fs.copyFileSync(path.join(target, 'debug', library), at('defect.node'));
  const code = `
    const addon = require(${JSON.stringify(at('defect.node'))});
    for (let i = 0; i < 3; i++) {
      try { addon.defect(); } catch (e) { console.log(e instanceof Error, e.code, e.message); }
    }`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', code], { ...options, encoding: 'utf8' });
  assert.deepEqual([status, stderr], [0, '']);
  assert.equal(stdout, 'true GenericFailure a defect, as the test ordered\n'.repeat(3));
});

test('the shipped addon exports nothing that is there for tests', () => {
  assert.equal(require('../scripts/forge/addon.js').defect, undefined);
});
