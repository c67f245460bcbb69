'use strict';
// The README's table of settings and the variables that the code reads are one list.
const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { root } = require('./scene.js');

const read = (/** @type {string} */ file) => fs.readFileSync(path.join(root, file), 'utf8');

/** The files of what is shipped: no tests, nothing that only builds or measures it. */
function shipped() {
  const isOurs = (/** @type {string} */ file) => /\.(rs|js|sh)$|^scripts\/cli\//.test(file)
    && !/tests?\.rs$|\/checkpoint\.rs$|^scripts\/(bench\/|build|demo|install-)/.test(file);
  return ['crates/engine/src', 'crates/forge/src', 'bindings/src', 'scripts']
    .flatMap((folder) => fs.readdirSync(path.join(root, folder), { recursive: true }).map((name) => path.join(folder, String(name))))
    .filter((file) => isOurs(file) && fs.statSync(path.join(root, file)).isFile());
}

/** Where a name is read: a whole string (Rust's constants, a JS lookup), a member of an environment, a shell's expansion. */
const READ = /"((?:BOB|FORGE)_[A-Z_]+)"|\benv\.((?:BOB|FORGE)_[A-Z_]+)|\$\{?((?:BOB|FORGE)_[A-Z_]+)/g;

/** @param {string} text */
const readIn = (text) => [...text.matchAll(READ)].map((match) => match[1] ?? match[2] ?? match[3]);

/** The names of one row: a later one may be only the end of the first. @param {string} cell */
function namesIn(cell) {
  const [first = '', ...more] = Array.from(cell.matchAll(/`([A-Z_]+)`/g), ([, name]) => name);
  return [first, ...more.map((name) => (name.startsWith('_') ? first.replace(/_[A-Z]+$/, name) : name))];
}

test('every variable that the code reads is in the table of settings, and no other', () => {
  const section = read('README.md').split('\n## Settings\n')[1].split('\n## ')[0];
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  const table = rows.flatMap((row) => namesIn(row.split('|')[1]));
  // Set by the shim for its own children: told below the table.
  const own = Array.from(section.split(rows.at(-1) ?? '')[1].matchAll(/`(BOB_[A-Z_]+)`/g), ([, name]) => name);
  // A test's switch, in no shipped build.
  const code = new Set(shipped().flatMap((file) => readIn(read(file))).filter((name) => name !== 'FORGE_CONTROL'));
  assert.deepEqual([...new Set([...table, ...own])].sort(), [...code].sort());
  assert.equal(new Set(table).size, table.length, 'a name stands there once');
});

test('each way of reading a variable is seen', () => {
  const lines = ['pub const A: &str = "BOB_A_B";', 'process.env.BOB_C || {}', 'echo "${BOB_D:-3}" $BOB_E', 'no BOB_F, `BOB_G=0`'];
  assert.deepEqual(readIn(lines.join('\n')), ['BOB_A_B', 'BOB_C', 'BOB_D', 'BOB_E']);
  assert.deepEqual(namesIn(' `BOB_RATE_GRAPHQL` `_CORE` '), ['BOB_RATE_GRAPHQL', 'BOB_RATE_CORE']);
});
