'use strict';
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { budget, health } = require('..');
const { root, scene } = require('./scene.js');
const { faults } = require('./schema.js');

const now = 1_790_504_520;

/**
 * A machine whose budget has something on file.
 * @param {import('node:test').TestContext} t
 */
function busy(t) {
  const here = scene(t, `echo '{"resources":{"graphql":{"limit":5000,"used":1,"remaining":4999,"reset":${now + 60}}}}'`);
  const file = (/** @type {string} */ name, /** @type {string[]} */ lines) => {
    fs.mkdirSync(here.at('bob/forge'), { recursive: true });
    fs.writeFileSync(here.at(`bob/forge/${name}`), lines.map((line) => `${line}\n`).join(''));
  };
  file('budget.env', [
    'schema=bob-forge-budget/1', `fetched_at=${now - 20}`,
    'graphql_limit=5000', 'graphql_remaining=120', 'graphql_used=4880', `graphql_reset=${now + 1500}`,
    'core_limit=5000', 'core_remaining=4990', 'core_used=10', `core_reset=${now + 2400}`,
  ]);
  file('quota.log', [
    `${now - 600}\t4000\t1000\t${now + 1500}\t0\t5000\t${now + 2400}`,
    `${now - 20}\t4880\t120\t${now + 1500}\t10\t4990\t${now + 2400}`,
  ]);
  file('ratelimit.log', [`${now - 50}\tgraphql\tissue list\tproject/groom\t-\tprimary`]);
  file('budget.log', [`${now - 40}\twait\tgraphql\t120\t300\tissue list`, `${now - 30}\tdefer\tgraphql\t31\t34\tissue list`]);
  file('rate.log', Array(31).fill(`${now - 26}\tgraphql\tfg`));
  file('observations.log', [`${now - 50}\t1\t10\tratelimit\tissue list\tgraphql\t1\tproject/groom\t-`]);
  return { ...here, file, at: here.at, options: { ...here.options, now } };
}

test('the document says what is left, who spent it and who waited', (t) => {
  const { options } = busy(t);
  const document = budget.document(options);
  assert.deepEqual(faults('quota-1', document), []);
  assert.equal(document.quotas.graphql?.state, 'waiting');
  assert.equal(document.quotas.graphql?.spentLastHour, 880);
  assert.equal(document.quotas.search, null);
  assert.deepEqual(document.spentBy.callers, [
    { caller: 'project/groom', session: null, calls: 1, cost: { graphql: 1, core: 0, search: 0 }, rateLimited: 1 },
  ]);
  assert.deepEqual(document.heldBack.waits, { count: 1, seconds: 300 });
  assert.deepEqual([document.rates.graphql.count, document.rates.graphql.backgroundDeferred], [31, true]);
  assert.equal(document.rateLimited.last?.limit, 'primary');
});

test('with nothing on file everything is unknown, and every document still fits its schema', (t) => {
  const { options, calls } = scene(t);
  assert.deepEqual(faults('quota-1', budget.document(options)), []);
  assert.deepEqual(faults('quota-compact-1', budget.compact(options)), []);
  assert.equal(budget.document(options).fetchedAt, null);
  assert.equal(budget.doctorLine(options).level, 'INFO');
  assert.equal(health.status({ ...options, probe: false }).quota, null);
  assert.deepEqual(calls(), [], 'none of them asks the forge');
});

test('the compact form, the doctor and the health document show the same', (t) => {
  const { options } = busy(t);
  const compact = budget.compact(options);
  assert.deepEqual(faults('quota-compact-1', compact), []);
  assert.deepEqual([compact.graphql?.remaining, compact.rateLimited], [120, 1]);
  const { level, text } = budget.doctorLine(options);
  assert.equal(level, 'WARN');
  assert.match(text, /^forge quota: graphql 120 of 5,000 left, under its floor until \d\d:\d\d; core 4,990/);
  assert.deepEqual(health.status({ ...options, probe: false }).quota, budget.document(options));
});

test('a plan is what the gate would do, with nothing taken', (t) => {
  const { options, at } = busy(t);
  const plan = (/** @type {string} */ line, env = {}) => {
    const planned = budget.plan(line.split(' '), { ...options, env: { ...options.env, ...env } });
    assert.deepEqual(faults('plan-1', planned), []);
    return planned;
  };
  assert.deepEqual([plan('issue list').action, plan('issue list').seconds], ['wait', 1500]);
  assert.deepEqual(plan('issue list').cause, { kind: 'low', remaining: 120, line: 300, resetAt: now + 1500 });
  assert.equal(plan('issue list', { BOB_FORGE_MAX_WAIT: '60' }).capped, true);
  assert.equal(plan('issue list', { BOB_FORGE_INTERACTIVE: '1' }).action, 'run');
  assert.equal(plan('issue list', { BOB_FORGE_DEADLINE: String(now + 5) }).action, 'give-up');
  const background = { BOB_FORGE_BACKGROUND: '1', BOB_FORGE_FLOOR_GRAPHQL: '0' };
  assert.deepEqual([plan('issue list', background).action, plan('issue list', background).seconds], ['defer', 34]);
  assert.equal(plan('issue list', { ...background, BOB_FORGE_BACKGROUND_DEFER: '0' }).action, 'refuse');
  assert.deepEqual([plan('run list').action, plan('auth status').quota, plan('run list').cause], ['run', null, null]);
  assert.equal(fs.readFileSync(at('bob/forge/rate.log'), 'utf8').trimEnd().split('\n').length, 31);
});

test('every kind of call has its quota', (t) => {
  const { options } = scene(t);
  const of = (/** @type {string} */ line, env = {}) =>
    budget.resourceFor(line.split(' '), { ...options, env: { ...options.env, ...env } });
  for (const line of ['issue list', 'pr view 5', 'repo view', 'project list', 'api graphql']) assert.equal(of(line), 'graphql', line);
  for (const line of ['api repos/o/r', 'run list', 'workflow list', 'release view', 'secret list', 'variable list']) assert.equal(of(line), 'core', line);
  for (const line of ['search issues x', 'api search/issues']) assert.equal(of(line), 'search', line);
  for (const line of ['api rate_limit', 'auth status', '--version', 'help', 'issue list -R ghe.example.com/o/r']) assert.equal(of(line), null, line);
  assert.equal(of('issue list', { GH_HOST: 'ghe.example.com' }), null);
});

test('a refresh asks the real gh once and keeps the answer', (t) => {
  const { options, calls } = busy(t);
  assert.equal(budget.refresh(options), true);
  assert.deepEqual(calls(), ['api rate_limit|seen']);
  assert.equal(budget.document(options).quotas.graphql?.remaining, 4999);
  const silent = scene(t, 'exit 1');
  assert.equal(budget.refresh(silent.options), false);
  const none = { ...silent.options, env: { ...silent.options.env, PATH: '/nowhere' } };
  assert.throws(() => budget.refresh(none), { code: 'EFORGE_NO_GH' });
});

test('trim says what each log has lost', (t) => {
  const { options, file } = busy(t);
  file('budget.log', Array(3100).fill(`${now}\tpace\tgraphql\t900\t2\tissue list`));
  assert.deepEqual(budget.trim(options), { 'observations.log': 0, 'quota.log': 0, 'ratelimit.log': 0, 'budget.log': 100 });
  assert.deepEqual(budget.trim(options)['budget.log'], 0);
});

test('arguments that do not fit and a missing place are errors with a code', () => {
  for (const args of [undefined, 'issue list', [1]]) {
    // @ts-expect-error on purpose
    assert.throws(() => budget.plan(args), { code: 'EFORGE_USAGE' });
    // @ts-expect-error on purpose
    assert.throws(() => budget.resourceFor(args), { code: 'EFORGE_USAGE' });
  }
  assert.throws(() => budget.document({ env: {} }), { code: 'EFORGE_USAGE' });
});

test('the module is a command line too, and each document it prints fits its schema', (t) => {
  const { options } = busy(t);
  const run = (/** @type {string[]} */ ...args) => {
    const env = { ...process.env, ...options.env, TZ: 'UTC', FORGE_HEALTH_ADDON: process.env.FORGE_HEALTH_ADDON };
    const file = path.join(root, 'scripts/forge/budget.js');
    return spawnSync(process.execPath, [file, ...args], { env, cwd: options.cwd, encoding: 'utf8' });
  };
  const table = [
    ['quota-1', 'status', '--json'],
    ['quota-compact-1', '--compact'],
    ['doctor-1', 'doctor', '--json'],
    ['plan-1', 'plan', '--json', '--', 'issue', 'list'],
    ['resource-1', 'resource', '--json', '--', 'issue', 'list'],
    ['trim-1', 'trim', '--json'],
    ['refresh-1', 'refresh', '--json'],
  ];
  for (const [schema, ...args] of table) {
    const { stdout, stderr, status } = run(...args);
    assert.deepEqual([status, stderr], [0, ''], args.join(' '));
    assert.deepEqual(faults(schema, JSON.parse(stdout)), [], args.join(' '));
  }
  assert.match(run().stdout, /^quota: graphql /);
  assert.match(run('plan', '--', 'auth', 'status').stdout, /^run: auth status — it spends no quota\n$/);
  assert.equal(run('plan').status, 2);
});
