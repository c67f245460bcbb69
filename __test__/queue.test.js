'use strict';
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { queue } = require('..');
const { root, scene } = require('./scene.js');

const now = 1_800_000_000;
const comment = ['issue', 'comment', '12', '--body', 'hello'];

/**
 * @param {import('node:test').TestContext} t
 * @param {string} [script]
 */
function project(t, script) {
  const { at, options, calls } = scene(t, script);
  const made = spawnSync('git', ['init', '-q', at('project')]);
  assert.equal(made.status, 0);
  fs.appendFileSync(at('project/.git/config'), '[remote "origin"]\n\turl = https://github.com/acme/widget.git\n');
  const env = {
    ...options.env, GIT_CONFIG_NOSYSTEM: '1', PATH: `${options.env.PATH}:${process.env.PATH}`,
    BOB_FORGE_QUEUE_SETTLE: '0', BOB_FORGE_REPLAY_SPACING_MS: '0',
  };
  return { at, calls, options: { ...options, env } };
}

/** @param {string} code */
const withCode = (code) => (/** @type {unknown} */ e) => e instanceof Error && 'code' in e && e.code === code;

test('a write is queued, seen, and set aside', (t) => {
  const { at, options } = project(t);
  const empty = queue.status(options);
  assert.equal(empty.schema, 'bob-forge-queue-status/1');
  assert.deepEqual([empty.depth, empty.line, empty.exitCode], [0, null, 0]);

  const entry = queue.enqueue(comment, { ...options, now, signal: 'server' });
  assert.deepEqual([entry.id, entry.kind, entry.target, entry.signal, entry.depth], ['q000001', 'comment', '12', 'server', 1]);
  assert.equal(entry.repo, 'github.com/acme/widget');
  assert.equal(fs.readFileSync(/** @type {string} */ (entry.body_file), 'utf8'), 'hello');
  assert.deepEqual(entry.argv, ['issue', 'comment', '12', '--body-file', entry.body_file]);

  const made = queue.enqueue(['issue', 'create', '-t', 'todo', '-F', '-'], { ...options, now, body: 'text\n' });
  assert.equal(made.url, 'https://github.com/acme/widget/issues/BOB-Q2');
  assert.equal(queue.resolve('BOB-Q2', options), null);

  const seen = queue.overview({ ...options, now: now + 90 });
  assert.deepEqual([seen.depth, seen.oldestAgeSeconds, seen.marked], [2, 90, true]);
  assert.deepEqual(seen.pending, { create: 1, comment: 1 });
  assert.deepEqual(seen.unresolved, ['BOB-Q2']);
  assert.deepEqual([seen.line, seen.colour], ['Forge queue: 2 pending', 'yellow']);
  assert.deepEqual(queue.list(options).map((e) => e.summary), ['comment on #12', 'create "todo"']);
  assert.equal(queue.show('q000002', options).body, 'text\n');
  assert.equal(queue.show(2, options).sealed, true);

  assert.equal(queue.drop('#1', options).status, 'dropped');
  assert.deepEqual(queue.list(options).map((e) => e.seq), [2]);
  assert.deepEqual(queue.list({ ...options, all: true }).map((e) => e.status), ['dropped', 'pending']);
  assert.equal(queue.clear(options), 2);
  assert.equal(queue.enqueue(comment, options).id, 'q000003');
  assert.equal(fs.statSync(at('project/.claude/forge/queue')).mode & 0o777, 0o700);
  assert.equal(fs.statSync(at('project/.claude/forge/queue/000003.json')).mode & 0o777, 0o600);
});

test('only what may be queued is, and every refusal says why', (t) => {
  const { options } = project(t);
  const yes = [comment, ['issue', 'close', '3'], ['issue', 'create', '-t', 'x', '-F', '-'], ['issue', 'edit', '3', '--add-label', 'bug']];
  const no = [
    ['issue', 'delete', '3'], ['issue', 'create', '-b', 'x'], ['issue', 'list'], ['issue', 'edit', '3', '-b', ' '],
    ['issue', 'comment', '3', '--web'], ['-R', 'other/repo', ...comment], ['issue', 'comment', '3', '-F', '/nowhere'],
  ];
  for (const args of yes) assert.equal(queue.isQueueable(args, options), true, args.join(' '));
  for (const args of no) {
    assert.equal(queue.isQueueable(args, options), false, args.join(' '));
    assert.throws(() => queue.enqueue(args, options), withCode('EFORGE_NOT_QUEUED'), args.join(' '));
  }
  assert.throws(() => queue.enqueue(['-R', 'other/repo', ...comment], options), /it is for github\.com\/other\/repo/);
  const full = { ...options, env: { ...options.env, BOB_FORGE_QUEUE_MAX: '1' } };
  queue.enqueue(comment, full);
  assert.throws(() => queue.enqueue(comment, full), withCode('EFORGE_QUEUE_FULL'));
  assert.equal(queue.isQueueable(comment, { ...options, env: { ...options.env, BOB_FORGE_QUEUE: '0' } }), false);
  assert.throws(() => queue.status({ ...options, cwd: '/' }), withCode('EFORGE_USAGE'));
});

test('a replay is a dry run until it is told to deliver, and a handle then has its number', (t) => {
  const script = `
case "$*" in
  api*) echo '[]' ;;
  "issue create"*) cat > "$HOME/body"; echo https://github.com/acme/widget/issues/42 ;;
  "issue comment 42"*) cat > "$HOME/comment"; echo https://github.com/acme/widget/issues/42#issuecomment-1 ;;
  *) echo "HTTP 404: Not Found" >&2; exit 1 ;;
esac`;
  const { at, calls, options } = project(t, script);
  queue.enqueue(['issue', 'create', '-t', 'todo', '-F', '-'], { ...options, body: 'text\n' });
  queue.enqueue(['issue', 'comment', 'BOB-Q1', '-F', '-'], { ...options, body: Buffer.from('on it') });
  const dry = queue.replay(options);
  assert.deepEqual([dry.applied, dry.exitCode, dry.rows.map((row) => row.outcome)], [false, 3, ['pending', 'pending']]);
  assert.deepEqual(calls(), []);
  const report = queue.replay({ ...options, apply: true });
  assert.deepEqual([report.delivered, report.pending, report.exitCode], [2, 0, 0], JSON.stringify(report));
  assert.equal(fs.readFileSync(at('body'), 'utf8'), 'text\n');
  assert.equal(fs.readFileSync(at('comment'), 'utf8'), 'on it');
  assert.equal(queue.resolve('BOB-Q1', options), 42);
  assert.equal(queue.resolve('https://github.com/acme/widget/issues/BOB-Q1', options), 42);
  assert.deepEqual(JSON.parse(fs.readFileSync(at('project/.claude/forge/queue/handles.json'), 'utf8')), { 'BOB-Q1': 42 });
  assert.throws(() => queue.resolve('42', options), withCode('EFORGE_USAGE'));
});

test('arguments that do not fit are refused before anything is read', () => {
  const wrong = /** @type {any} */ (queue);
  for (const call of [
    () => wrong.enqueue('issue close 1'), () => wrong.enqueue(comment, { body: 5 }), () => wrong.enqueue(comment, 5),
    () => wrong.show({}), () => wrong.drop(), () => wrong.resolve(3), () => wrong.list({ all: 'yes' }),
    () => wrong.replay({ apply: 1 }), () => wrong.replay({ batch: -1 }), () => wrong.replay({ accept: 3 }),
    () => wrong.isQueueable(null), () => wrong.status(null),
  ]) assert.throws(call, (/** @type {any} */ e) => e instanceof TypeError && /** @type {any} */ (e).code === 'EFORGE_USAGE', String(call));
});

test('the module is a command line, and says the same as forge', (t) => {
  const { options } = project(t);
  queue.enqueue(comment, options);
  const run = (/** @type {string[]} */ ...args) => spawnSync(process.execPath, [path.join(root, 'scripts/forge/queue.js'), ...args], {
    env: { ...options.env, FORGE_HEALTH_ADDON: process.env.FORGE_HEALTH_ADDON }, cwd: options.cwd, encoding: 'utf8',
  });
  const status = run('status');
  assert.equal(status.status, 3, status.stderr);
  assert.match(status.stdout, /^forge queue: 1 pending \(1 comment\), oldest \d+s\n/);
  assert.match(run('list').stdout, /q000001 {2}pending .* comment on #12/);
  assert.match(run('show', '1').stdout, /hello/);
  assert.equal(JSON.parse(run('status', '--json').stdout).depth, 1);
  assert.equal(run('show', 'x').status, 2);
  assert.equal(run('drop', '1').status, 0);
  assert.equal(run().status, 0);
});
