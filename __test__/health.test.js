'use strict';
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const health = require('../scripts/forge/health.js');
const { root, scene } = require('./scene.js');

const now = 1_800_000_000;
const noReads = {
  served: 0, stale: 0, lastServedAt: null, lastAnswerAgeSeconds: null, lastSignal: null, lastCommand: null, window: 3600,
};

test('a recorded call is evidence at once', (t) => {
  const { options } = scene(t);
  const row = health.record({ rc: 0, ms: 12, sub: 'issue list', now, ...options });
  assert.deepEqual(row, {
    epoch: now, exit: 0, ms: 12, signal: 'ok', subcommand: 'issue list', quota: '-', cost: 0, caller: 'project', session: '-',
  });
  assert.equal(health.isTrustworthy({ now, ...options }), true);
  health.record({ rc: 1, signal: 'server', now, ...options });
  assert.equal(health.isTrustworthy({ now, ...options }), false);
  const status = health.status({ now, ...options });
  assert.deepEqual(status, {
    schema: 'bob-forge-health/1', state: 'degraded', reason: 'partial-failures', causes: ['server'], source: 'cache',
    sample: { total: 2, ok: 1, answered: 1, failures: 1, net: 0, server: 1, ratelimit: 0, auth: 0, notfound: 0, window: 300 },
    checkedAt: now, ageSeconds: 0, cache: noReads, quota: null,
  });
  assert.deepEqual(health.observations({ now, ...options }).map((o) => o.signal), ['ok', 'server']);
});

test('without evidence the forge is asked once, with the whole environment', (t) => {
  const { options, calls } = scene(t);
  assert.equal(health.status({ probe: false, ...options }).state, 'unknown');
  assert.deepEqual(calls(), []);
  assert.equal(health.isTrustworthy(options), true);
  assert.equal(health.isTrustworthy(options), true);
  assert.deepEqual(calls(), ['api rate_limit|seen']);
});

test('a probe is recorded like any other call', (t) => {
  const { options } = scene(t, "echo 'error connecting to api.github.com' >&2; exit 1");
  const row = health.probe(options);
  assert.deepEqual([row.signal, row.exit, row.subcommand, row.quota, row.cost], ['net', 1, 'api', '-', 0]);
  assert.equal(health.status({ probe: false, ...options }).state, 'unreachable');
  health.reset(options);
  assert.deepEqual(health.observations(options), []);
});

test('no gh is an error for a probe and an unknown for a status', (t) => {
  const { options, at } = scene(t);
  fs.rmSync(at('bin/gh'));
  const nowhere = { ...options, env: { ...options.env, PATH: at('bin') } };
  assert.throws(() => health.probe(nowhere), { name: 'Error', code: 'EFORGE_NO_GH' });
  const { state, reason } = health.status(nowhere);
  assert.deepEqual([state, reason], ['unknown', 'no-gh']);
  assert.equal(health.isTrustworthy(nowhere), false);
});

test('a state folder that cannot be written is an error for a record alone', (t) => {
  const { options, at } = scene(t);
  fs.writeFileSync(at('file'), '');
  const broken = { ...options, env: { ...options.env, BOB_FORGE_STATE: at('file') } };
  assert.throws(() => health.record({ rc: 0, ...broken }), { code: 'EFORGE_STATE', message: /observations\.log/ });
  assert.equal(health.status(broken).state, 'operational');
});

test('classify is pure and needs no order and no clock', () => {
  const outcomes = Array.from({ length: 12 }, (_, i) => ({ epoch: now - i, signal: /** @type {const} */ (i < 10 ? 'ok' : 'net') }));
  const copy = structuredClone(outcomes);
  const verdict = health.classify(outcomes);
  assert.deepEqual([verdict.state, verdict.reason, verdict.sample.total], ['operational', 'recent-calls-succeeded', 10]);
  for (let i = 0; i < 100; i++) assert.deepEqual(health.classify(outcomes), verdict);
  assert.deepEqual(outcomes, copy);
  assert.equal(health.classify(outcomes, { now: now + 1000 }).state, 'unknown');
  assert.equal(health.classify(outcomes, { now: now + 1000, window: 2000 }).state, 'operational');
  assert.deepEqual(health.classify([{ signal: 'net' }, { signal: 'server' }]).causes, ['net', 'server']);
  assert.equal(health.classify([]).reason, 'no-evidence');
});

test('arguments that do not fit are TypeErrors that say what fits', (t) => {
  const { options } = scene(t);
  const any = /** @type {any} */ (health);
  const wrong = [
    () => any.record(), () => any.record({}), () => any.record({ rc: '1' }), () => any.record({ rc: 1.5 }), () => any.record({ rc: 2 ** 40 }),
    () => any.record({ rc: 1, signal: 'splendid', ...options }), () => any.record({ rc: 1, ms: -1 }),
    () => any.record({ rc: 1, sub: 7 }), () => any.status(null), () => any.status('x'), () => any.status({ ttl: '60' }),
    () => any.status({ window: -1 }), () => any.status({ window: NaN }), () => any.status({ probe: 1 }),
    () => any.status({ env: 7 }), () => any.isTrustworthy({ cwd: 7 }), () => any.classify(), () => any.classify([null]),
    () => any.status({ ttl: Object.create(null) }), () => any.status({ env: { BOB_FORGE_TTL: Object.create(null) } }),
    () => any.status({ env: { PATH: Symbol('x') } }), () => any.record({ rc: Object.create(null) }),
    () => any.record({ rc: new Proxy([], { get: (of, name) => (name === 'length' ? 1e9 : Reflect.get(of, name)) }) }),
    () => any.classify([{}]), () => any.classify([{ signal: 'splendid' }]), () => any.classify([{ signal: 'ok', epoch: 'x' }]),
    () => any.classifySignal(), () => any.classifySignal('1'), () => any.classifySignal(1, 7), () => any.classifySignal(1, '', 'x'),
    () => any.classifySignal(1, '', new Array(2)),
  ];
  for (const call of wrong) assert.throws(call, { name: 'TypeError', code: 'EFORGE_USAGE' }, String(call));
  assert.deepEqual(health.observations(options), []);
});

test('run as a program it is the forge command', (t) => {
  const { options } = scene(t);
  const run = (/** @type {string[]} */ ...args) => {
    const program = path.join(root, 'scripts/forge/health.js');
    return spawnSync(process.execPath, [program, ...args], { ...options, encoding: 'utf8' });
  };
  const done = run('record', '--rc', '1', '--signal', 'net');
  assert.deepEqual([done.status, done.stdout, done.stderr], [0, 'recorded: net (exit 1, 0 ms, -)\n', '']);
  const status = run();
  assert.equal(status.status, 4);
  assert.match(status.stdout, /^forge: unreachable \(network-failures\) — 0\/1 recent calls ok, /);
  assert.equal(JSON.parse(run('status', '--json').stdout).schema, 'bob-forge-health/1');
  const usage = run('--bogus');
  assert.deepEqual([usage.status, usage.stdout], [2, '']);
});
