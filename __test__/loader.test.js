'use strict';
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { root, scene } = require('./scene.js');

const files = ['addon.js', 'health.js', 'main.js', 'options.js'];

/** Copies the facades to where a deployed home has them. @param {(name: string) => string} at */
function deploy(at) {
  fs.mkdirSync(at('scripts/forge'), { recursive: true });
  for (const file of files) fs.copyFileSync(path.join(root, 'scripts/forge', file), at(`scripts/forge/${file}`));
}

const complain = `try { require(process.argv[1]) } catch (e) { console.log(JSON.stringify([e.code, e.message])) }`;
const load = (/** @type {string} */ file, /** @type {NodeJS.ProcessEnv} */ env = {}) =>
  spawnSync(process.execPath, ['-e', complain, file], { encoding: 'utf8', env: { ...process.env, ...env } });

test('a missing addon is one clear line with a code and the command that builds it', (t) => {
  const { at } = scene(t);
  deploy(at);
  const [code, message] = JSON.parse(load(at('scripts/forge/health.js')).stdout);
  assert.equal(code, 'EFORGE_NO_ADDON');
  assert.match(message, /^cannot load the forge addon for \S+ \(.*not found.*\); build it with `make build`$/);
});

test('the override names the one addon that is tried', (t) => {
  const { at } = scene(t);
  fs.writeFileSync(at('bad.node'), 'no library');
  for (const file of ['missing.node', 'bad.node']) {
    const [code, message] = JSON.parse(load(path.join(root, 'index.js'), { FORGE_HEALTH_ADDON: at(file) }).stdout);
    assert.equal(code, 'EFORGE_NO_ADDON');
    assert.ok(message.includes(at(file)) && !message.includes('\n'), message);
  }
});

test('a deployed home needs no build tree', (t) => {
  const { at, options } = scene(t);
  deploy(at);
  const built = path.join(root, 'target/deploy/forge.node');
  fs.copyFileSync(built, at('scripts/forge/forge.node'));
  const program = [at('scripts/forge/health.js'), 'record', '--rc', '0'];
  const { status, stderr } = spawnSync(process.execPath, program, { ...options, encoding: 'utf8' });
  assert.deepEqual([status, stderr], [0, '']);
  assert.equal(spawnSync(process.execPath, [program[0]], options).status, 0);
});
