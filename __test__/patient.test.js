'use strict';
const assert = require('node:assert/strict');
const { execFile, execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const test = require('node:test');
const { promisify } = require('node:util');
const { patient } = require('..');
const { localForge } = require('./local-forge.js');
const { scene } = require('./scene.js');

const LIMIT = 'GraphQL: API rate limit exceeded for user ID 1.\n';
const HELD = '[forge-budget] waiting 412s for the GitHub graphql quota to reset at 10:47 (120 left, floor 300). This call finishes on its own: do not retry it and do not stop.\n';
const now = 1_800_000_000;

/** A runner that answers with these, in turn, and what it was given. @param {any[]} answers */
function runner(...answers) {
  /** @type {any[]} */
  const given = [];
  const run = async (/** @type {string[]} */ args, /** @type {any} */ options) => {
    given.push({ args, ...options });
    const answer = answers[given.length - 1];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { run, given };
}

/** A machine with 120 GraphQL points left until a reset in 400 s. @param {import('node:test').TestContext} t */
function low(t) {
  const { options, at } = scene(t);
  fs.mkdirSync(at('bob/forge'), { recursive: true });
  const lines = ['schema=bob-forge-budget/1', `fetched_at=${now - 5}`, 'graphql_limit=5000', 'graphql_remaining=120', 'graphql_used=4880', `graphql_reset=${now + 400}`];
  fs.writeFileSync(at('bob/forge/budget.env'), `${lines.join('\n')}\n`);
  return { ...options, now };
}

test('a call that nothing holds keeps its limit, and is named', async (t) => {
  const { options } = scene(t);
  const { run, given } = runner({ code: 0, stdout: 'x' });
  const env = { ...options.env, MINE: 'kept' };
  const result = await patient.run(run, ['issue', 'list'], { ...options, env, now, timeout: 20_000, caller: 'brief', maxBuffer: 7 });
  assert.deepEqual(result, { code: 0, stdout: 'x', attempts: 1, retried: false });
  assert.equal(given.length, 1);
  assert.deepEqual([given[0].args, given[0].timeout, given[0].maxBuffer], [['issue', 'list'], 20_000, 7]);
  assert.deepEqual(given[0].env, { ...env, BOB_FORGE_CALLER: 'brief', BOB_FORGE_DEADLINE: String(now + 20) });
});

test('the limit makes room for the wait that the shim is about to make', async (t) => {
  const { run, given } = runner({ code: 0 }, { code: 0 });
  await patient.run(run, ['issue', 'list'], { ...low(t), timeout: 20_000 });
  assert.deepEqual([given[0].timeout, given[0].env.BOB_FORGE_DEADLINE], [420_000, String(now + 420)]);
  // Another quota is not low.
  await patient.run(run, ['api', 'repos/o/r'], { ...low(t), timeout: 20_000 });
  assert.equal(given[1].timeout, 20_000);
});

test('a rate-limited answer is run once more with room for a full backoff, and only once', async (t) => {
  const { options } = scene(t);
  const limited = { code: 1, stdout: '', stderr: LIMIT };
  const twice = runner(limited, { code: 0, stdout: 'y' });
  assert.deepEqual(await patient.run(twice.run, ['issue', 'list'], { ...options, timeout: 20_000 }), { code: 0, stdout: 'y', attempts: 2, retried: true });
  assert.deepEqual(twice.given.map((one) => one.timeout), [20_000, 320_000]);
  const still = runner(limited, limited, { code: 0 });
  assert.deepEqual(await patient.run(still.run, ['issue', 'list'], options), { ...limited, attempts: 2, retried: true });
  assert.equal(still.given[0].timeout, undefined);
});

test('every way a runner can tell of a time-out or a limit is understood', async (t) => {
  const options = low(t);
  const error = (/** @type {object} */ fields) => Object.assign(new Error('Command failed'), fields);
  const again = [
    { timedOut: true, stderr: HELD }, { killed: true, signal: 'SIGTERM', code: null, stderr: HELD }, { status: null, error: { code: 'ETIMEDOUT' }, stderr: Buffer.from(HELD) },
    error({ killed: true, signal: 'SIGTERM', code: null, stderr: HELD }), error({ code: 'ETIMEDOUT', stderr: '' }), error({ exitCode: 1, stderr: LIMIT }), { status: 1, stderr: Buffer.from(LIMIT) },
  ];
  for (const outcome of again) {
    const { run } = runner(outcome, { code: 0 });
    assert.equal((await patient.run(run, ['issue', 'list'], { ...options, timeout: 20_000 })).attempts, 2);
  }
  const { options: calm } = scene(t);
  const once = [{ code: 1, stderr: 'HTTP 503: x (https://api.github.com/graphql)' }, { timedOut: true, stderr: '' }, { code: 0, stderr: LIMIT }, { code: 4, stderr: 'gh auth login' }];
  for (const outcome of once) {
    const { run } = runner(outcome, { code: 0 });
    assert.equal((await patient.run(run, ['issue', 'list'], { ...calm, timeout: 20_000 })).attempts, 1, JSON.stringify(outcome));
  }
});

test('a write that the queue has, or that may have been made, is never run twice', async (t) => {
  const { options } = scene(t);
  const queued = `${HELD}[forge-queue] not delivered yet — the live call failed (ratelimit). Spooled as q000003; it replays in order when the forge recovers (queue depth 3).\n`;
  for (const outcome of [{ timedOut: true, stderr: queued }, { timedOut: true, signal: 'SIGKILL', stderr: HELD }]) {
    const { run } = runner(outcome, { code: 0 });
    const args = ['issue', 'comment', '3', '--body', 'x'];
    assert.deepEqual(await patient.run(run, args, { ...options, timeout: 20_000 }), { ...outcome, attempts: 1, retried: false });
  }
});

test("the runner's own result and error come through, whatever they are", async (t) => {
  const { options } = scene(t);
  class Answer {
    constructor() { this.code = 0; }

    get double() { return this.code * 2; }
  }
  const answer = new Answer();
  const result = await patient.run(() => answer, ['issue', 'list'], options);
  assert.ok(result instanceof Answer && result.double === 0 && result.attempts === 1 && !('attempts' in answer));
  assert.deepEqual(await patient.run(() => 'text', ['issue', 'list'], options), { stdout: 'text', attempts: 1, retried: false });
  assert.deepEqual(await patient.run(() => undefined, ['issue', 'list'], options), { attempts: 1, retried: false });
  assert.equal((await patient.run(() => Object.freeze({ code: 3 }), ['issue', 'list'], options)).code, 3);
  class Mine extends Error {}
  for (const error of [new Mine('sync'), Object.freeze(new Mine('frozen')), 'a string', null]) {
    const seen = await patient.run(() => { throw error; }, ['issue', 'list'], options).catch((e) => e);
    assert.equal(seen, error);
    const later = await patient.run(() => Promise.reject(error), ['issue', 'list'], options).catch((e) => e);
    assert.equal(later, error);
  }
  const failed = Object.assign(new Mine('limited'), { code: 1, stderr: LIMIT });
  const seen = await patient.run(() => { throw failed; }, ['issue', 'list'], options).catch((e) => e);
  assert.deepEqual([seen, seen.attempts, seen.retried], [failed, 2, true]);
});

test('arguments that do not fit are refused before anything is run', async (t) => {
  const { options } = scene(t);
  const never = () => assert.fail('was run');
  /** @type {any[][]} */
  const bad = [['gh', []], [never, 'issue list'], [never, [1]], [never, ['x'], { ...options, timeout: '20' }], [never, ['x'], { ...options, timeout: -1 }], [never, ['x'], { ...options, caller: 7 }]];
  for (const [run, args, more] of bad) await assert.rejects(patient.run(run, args, more), { code: 'EFORGE_USAGE' });
});

test("through the shim: a limit that outlasts the shim's own backoff is met once more, and then answered", async (t) => {
  const forge = await localForge(t);
  await forge.control('POST', 'seed', { issues: [{ number: 1, title: 'One' }] });
  fs.writeFileSync(forge.at('sleep'), `#!/bin/sh\necho "$1" >> '${forge.at('slept')}'\n`, { mode: 0o755 });
  const env = { ...forge.env, BOB_FORGE_BUDGET: '1', BOB_FORGE_SLEEP: forge.at('sleep'), BOB_FORGE_BACKOFF_MAX: '4', BOB_FORGE_CACHE: '0' };
  const options = { ...forge.options, env, timeout: 60_000, caller: 'brief' };
  const runners = {
    async: (/** @type {string[]} */ args, /** @type {any} */ given) => promisify(execFile)('gh', args, given),
    spawnSync: (/** @type {string[]} */ args, /** @type {any} */ given) => spawnSync('gh', args, { ...given, encoding: 'utf8' }),
    execFileSync: (/** @type {string[]} */ args, /** @type {any} */ given) => execFileSync('gh', args, { ...given, encoding: 'utf8', stdio: 'pipe' }),
  };
  for (const [name, run] of Object.entries(runners)) {
    await forge.fault({ fault: 'secondary', retry_after_s: null, times: 2, operation: 'IssueByNumber' });
    const result = /** @type {any} */ (await patient.run(run, ['issue', 'view', '1', '--json', 'title'], options));
    assert.deepEqual([result.attempts, JSON.parse(result.stdout)], [2, { title: 'One' }], name);
  }
  const observed = fs.readFileSync(forge.at('bob/forge/observations.log'), 'utf8').trim().split('\n').map((line) => line.split('\t'));
  assert.ok(observed.every((columns) => columns[7] === 'work/brief'), observed.join('\n'));
});
