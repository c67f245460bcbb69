'use strict';
// Every document that `--json` prints and JS callers get is held to its published schema: with nothing on
// file, with something of everything, and with one thing wrong in it.
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { budget, cache, health, queue } = require('..');
const { root, scene } = require('./scene.js');
const { faults, mutants } = require('./schema.js');

const comment = ['issue', 'comment', '12', '--body', 'hello'];

/**
 * A checkout whose gh shows its quota and nothing else, and refuses every write.
 * @param {import('node:test').TestContext} t
 */
function project(t) {
  const quota = '{"resources":{"graphql":{"limit":5000,"used":1,"remaining":4999,"reset":4000000000}}}';
  const script = `case "$*" in "api rate_limit"*) echo '${quota}' ;; api*) echo '[]' ;; *) echo 'HTTP 404: Not Found (https://api.github.com/graphql)' >&2; exit 1 ;; esac`;
  const { at, options } = scene(t, script);
  assert.equal(spawnSync('git', ['init', '-q', at('project')]).status, 0);
  fs.appendFileSync(at('project/.git/config'), '[remote "origin"]\n\turl = https://github.com/acme/widget.git\n');
  const env = {
    ...options.env, GIT_CONFIG_NOSYSTEM: '1', PATH: `${options.env.PATH}:${process.env.PATH}`, GH_TOKEN: 'mine',
    BOB_FORGE_QUEUE_SETTLE: '0', BOB_FORGE_REPLAY_SPACING_MS: '0', BOB_FORGE_BUDGET: '0',
  };
  const run = (/** @type {string} */ line) => {
    const [noun, ...args] = line.split(' ');
    const file = path.join(root, `scripts/forge/${noun}.js`);
    const ran = spawnSync(process.execPath, [file, ...args], {
      env: { ...env, FORGE_HEALTH_ADDON: process.env.FORGE_HEALTH_ADDON }, cwd: options.cwd, encoding: 'utf8',
    });
    assert.ok([0, 3, 4, 5].includes(ran.status ?? -1), `${line}: ${ran.status} ${ran.stderr}`);
    return JSON.parse(ran.stdout);
  };
  return { at, options: { ...options, env }, run };
}

/** The documents of a machine as it is now, each with its schema. @param {ReturnType<typeof project>} here */
const documents = ({ options, run }) => /** @type {[string, string, any][]} */ ([
  ['observations-1', 'health observations --json', run('health observations --json')],
  ['health-1', 'health status --no-probe --json', run('health status --no-probe --json')],
  ['health-1', 'health.status()', health.status({ ...options, probe: false })],
  ['cache-1', 'cache status --json', run('cache status --json')],
  ['cache-1', 'cache.status()', cache.status(options)],
  ['queue-status-1', 'queue status --json', run('queue status --json')],
  ['queue-status-1', 'queue.status()', queue.status(options)],
  ['queue-overview-1', 'queue.overview()', queue.overview(options)],
  ['queue-list-1', 'queue list --json', run('queue list --json')],
  ['queue-list-1', 'queue list --all --json', run('queue list --all --json')],
  ['replay-1', 'queue replay --json', run('queue replay --json')],
  ['quota-1', 'budget status --json', run('budget status --json')],
]);

/** @param {string} schema @param {string} what @param {any} document */
function hold(schema, what, document) {
  assert.deepEqual(faults(schema, document), [], what);
  for (const mutant of mutants(document)) {
    assert.notDeepEqual(faults(schema, mutant.document), [], `${what}: ${mutant.what}`);
  }
}

test('with nothing on file every document fits its schema, and none with one thing wrong does', (t) => {
  const here = project(t);
  for (const [schema, what, document] of documents(here)) hold(schema, what, document);
  for (const noun of ['cache', 'queue']) hold(`${noun}-clear-1`, noun, here.run(`${noun} clear --json`));
});

test('with something of everything every document fits its schema, and none with one thing wrong does', (t) => {
  const here = project(t);
  const { at, options, run } = here;
  const now = Math.floor(Date.now() / 1000);
  // Evidence, a line that is none, reads out of the cache, and a quota.
  for (const signal of health.SIGNALS) health.record({ rc: signal === 'ok' ? 0 : 1, signal, sub: 'issue list', ...options });
  fs.appendFileSync(at('bob/forge/observations.log'), 'no observation\n');
  cache.store(['issue', 'list'], 'one', options);
  cache.store(['search', 'issues', 'x'], 'two', { ...options, now: now + 500 });
  cache.store(['issue', 'list', '--json', 'title'], 'three', { ...options, env: { ...options.env, TZ: 'CET' } });
  assert.equal(budget.refresh(options), true);
  // One that the forge does not know, one that was dropped, and every kind waiting.
  queue.enqueue(['issue', 'comment', '99', '--body', 'x'], options);
  queue.enqueue(comment, options);
  queue.drop(2, options);
  for (let n = 0; n < 3; n += 1) queue.replay({ ...options, apply: true });
  queue.enqueue(['issue', 'create', '-t', 'todo', '-F', '-'], { ...options, body: 'text\n' });
  for (const line of ['issue comment BOB-Q3 --body x', 'issue edit 12 --title x', 'issue close 12', 'issue reopen 12']) {
    queue.enqueue(line.split(' '), { ...options, signal: 'net' });
  }
  const all = documents(here);
  for (const [schema, what, document] of all) hold(schema, what, document);
  const of = (/** @type {string} */ what) => all.find(([, name]) => name === what)?.[2];
  assert.deepEqual(Object.keys(of('queue.overview()').pending).sort(), ['close', 'comment', 'create', 'edit', 'reopen']);
  assert.deepEqual([of('queue.overview()').setAside, of('queue.overview()').problems.length], [{ dropped: 1, skipped: 1 }, 1]);
  assert.equal(of('health observations --json').bad_lines, 1);
  assert.notEqual(of('health.status()').quota, null);
  assert.equal(of('cache.status()').count, 3);
  // One entry, and what takes things away.
  for (const id of ['1', '3', '4']) hold('queue-1', `show ${id}`, run(`queue show ${id} --json`));
  hold('queue-1', 'drop', run('queue drop 7 --json'));
  for (const noun of ['cache', 'queue']) hold(`${noun}-clear-1`, noun, run(`${noun} clear --json`));
});

test('an entry on file fits its schema too', (t) => {
  const { at, options } = project(t);
  queue.enqueue(['issue', 'create', '-t', 'todo', '-F', '-'], { ...options, body: 'text\n' });
  hold('queue-1', 'on file', JSON.parse(fs.readFileSync(at('project/.claude/forge/queue/000001.json'), 'utf8')));
});

test('a member that is missing is a fault of every document that has to have it', (t) => {
  for (const [schema, what, document] of documents(project(t))) {
    for (const key of Object.keys(document)) {
      const { [key]: _, ...rest } = document;
      assert.deepEqual(faults(schema, rest), [`$.${key}: missing`], what);
    }
  }
});

test('every schema is named by a document, and every document of the types has one', () => {
  const published = fs.readdirSync(path.join(root, 'schemas')).map((name) => /^bob-forge-(.*)-(\d+)\.schema\.json$/.exec(name)?.slice(1).join('/'));
  const named = fs.readFileSync(path.join(root, 'index.d.ts'), 'utf8').matchAll(/schema: 'bob-forge-([a-z-]+\/\d+)'/g);
  for (const [, name] of named) assert.ok(published.includes(name), name);
  for (const file of fs.readdirSync(path.join(root, 'schemas'))) {
    const { title } = JSON.parse(fs.readFileSync(path.join(root, 'schemas', file), 'utf8'));
    assert.equal(`${title.replace('/', '-')}.schema.json`, file);
  }
});
