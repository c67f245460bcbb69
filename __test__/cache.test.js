'use strict';
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { cache } = require('..');
const { root, scene } = require('./scene.js');

const now = 1_800_000_000;
const list = ['issue', 'list', '--label', 'req'];

/** @param {import('node:test').TestContext} t */
function project(t) {
  const { at, options } = scene(t);
  fs.mkdirSync(at('project/.git'));
  fs.writeFileSync(at('project/.git/config'), '[remote "origin"]\n\turl = https://github.com/Acme/Widget.git\n');
  return { at, options: { ...options, env: { ...options.env, GIT_CONFIG_NOSYSTEM: '1', GH_TOKEN: 'mine' } } };
}

test('an answer comes back byte for byte until it is stale', (t) => {
  const { options } = project(t);
  assert.equal(cache.lookup(list, options), null);
  const bytes = Buffer.from([0, 255, 10, 13, 226, 130, 172]);
  assert.equal(cache.store(list, bytes, { now, ...options }), true);
  const answer = cache.lookup(list, { now: now + 45, ...options });
  assert.deepEqual(answer, { bytes, ageSeconds: 45, storedAt: now });
  assert.ok(Buffer.isBuffer(answer?.bytes));
  assert.equal(cache.lookup(list, { now: now + 86400, ...options }), null);
  assert.equal(cache.lookup(list, { now: now - 1, ...options }), null);
  assert.equal(cache.store(list, '', { now: now + 1, ...options }), true);
  assert.equal(cache.lookup(list, { now: now + 1, ...options })?.bytes.length, 0);
});

test('only the four reads are cached, by gh’s own grammar', (t) => {
  const { options } = project(t);
  const yes = ['issue list', 'issue ls', '-R o/r issue list', 'issue view 5', 'label list', 'search issues x'];
  const no = ['issue list --web', 'issue create -t x', 'pr list', 'api user', 'issue', '', 'search prs x', 'issue list --help'];
  for (const line of yes) {
    assert.equal(cache.isCacheable(line.split(' '), options), true, line);
    assert.match(cache.keyFor(line.split(' '), options) ?? '', /^[0-9a-f]{32}$/);
  }
  for (const line of no) {
    assert.equal(cache.isCacheable(line.split(' '), options), false, line);
    assert.equal(cache.keyFor(line.split(' '), options), null);
    assert.equal(cache.store(line.split(' '), 'x', options), false);
  }
});

test('a question is its argv, repository, host, shape and account', (t) => {
  const { options } = project(t);
  const key = (/** @type {object} */ env) => cache.keyFor(list, { ...options, env: { ...options.env, ...env } });
  const here = key({});
  assert.equal(key({ GH_REPO: 'acme/WIDGET' }), here);
  for (const env of [{ GH_REPO: 'acme/other' }, { GH_HOST: 'ghe.example' }, { TZ: 'CET' }]) assert.notEqual(key(env), here);
  assert.equal(key({ BOB_FORGE_CACHE: '0' }), null);
  assert.notEqual(cache.keyFor([...list, '-L5'], options), here);
  cache.store(list, 'mine', options);
  const as = (/** @type {string} */ GH_TOKEN) => cache.lookup(list, { ...options, env: { ...options.env, GH_TOKEN } });
  assert.equal(as('other'), null);
  assert.equal(as('')?.bytes.toString(), 'mine');
});

test('status and clear tell what is there', (t) => {
  const { options, at } = project(t);
  const empty = cache.status(options);
  assert.deepEqual([empty.count, empty.oldestAgeSeconds, empty.entries], [0, null, []]);
  cache.store(list, 'one', { now, ...options });
  cache.store(['search', 'issues', 'x'], 'two!', { now: now + 10, ...options });
  const status = cache.status({ now: now + 86_405, ...options });
  assert.deepEqual(status, {
    schema: 'bob-forge-cache/1', project: at('project'), enabled: true, maxAgeSeconds: 86400, count: 2, stale: 1, damaged: 0,
    bytes: 7, newestAgeSeconds: 86395, oldestAgeSeconds: 86405,
    entries: [
      { args: ['search', 'issues', 'x'], repo: null, host: 'github.com', bytes: 4, storedAt: now + 10, ageSeconds: 86395, fresh: true },
      { args: list, repo: 'github.com/acme/widget', host: 'github.com', bytes: 3, storedAt: now, ageSeconds: 86405, fresh: false },
    ],
  });
  const folder = at('project/.claude/forge/cache');
  for (const name of fs.readdirSync(folder)) assert.equal(fs.statSync(path.join(folder, name)).mode & 0o777, 0o600);
  assert.equal(fs.statSync(folder).mode & 0o777, 0o700);
  const { entries, bytes } = cache.clear(options);
  assert.ok(entries === 2 && bytes > 7);
  assert.equal(cache.lookup(list, { now, ...options }), null);
});

test('outside a checkout there is no cache, and a broken one is an error', (t) => {
  const { options, at } = project(t);
  const outside = { ...options, cwd: at('bin') };
  assert.equal(cache.store(list, 'x', outside), false);
  assert.equal(cache.status(outside).project, null);
  fs.writeFileSync(at('project/.claude'), 'a file');
  assert.throws(() => cache.store(list, 'x', options), { name: 'Error', code: 'EFORGE_STATE' });
  assert.equal(cache.lookup(list, options), null);
});

test('arguments that do not fit are TypeErrors', (t) => {
  const { options } = project(t);
  const bad = { name: 'TypeError', code: 'EFORGE_USAGE' };
  // @ts-expect-error not an array
  assert.throws(() => cache.lookup('issue list', options), bad);
  // @ts-expect-error not strings
  assert.throws(() => cache.keyFor(['issue', 5], options), bad);
  // @ts-expect-error not bytes
  assert.throws(() => cache.store(list, 5, options), bad);
  // @ts-expect-error not an object
  assert.throws(() => cache.status('x'), bad);
  assert.throws(() => cache.status({ now: -1, ...options }), bad);
});

test('the module is the forge command, too', (t) => {
  const { options, at } = project(t);
  cache.store(list, 'one', options);
  const run = (/** @type {string[]} */ ...words) => {
    const script = path.join(root, 'scripts/forge/cache.js');
    return spawnSync(process.execPath, [script, ...words], { env: options.env, cwd: at('project'), encoding: 'utf8' });
  };
  assert.match(run().stdout, /^forge: 1 cached answer\(s\), 3 bytes, in /);
  assert.equal(JSON.parse(run('status', '--json').stdout).count, 1);
  assert.match(run('clear').stdout, /^forge: dropped 1 cached answer/);
  assert.equal(run('nonsense').status, 2);
});
