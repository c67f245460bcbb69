'use strict';
// The scripts that read through the modules: what they claim in health, in an outage, under a rate limit and after it.
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { scene } = require('./scene.js');
const { VERSIONS, localForge, root, target } = require('./local-forge.js');

const flightplan = path.join(root, 'scripts/warp-drive/flightplan.js');
const todoConsume = path.join(root, 'scripts/todo/todo-consume.js');

/** @typedef {Awaited<ReturnType<typeof localForge>>} Forge */

/** @param {number} from @param {number} to */
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

const ALONE = { BOB_FORGE_BATCH: '0' };
const OUTAGE = { fault: '503', body: 'html' };
const LIMIT = { fault: 'primary' };

/** A plan of 47 items: 45 issues (30 closed), a merged pull request and one that does not exist. @param {Forge} forge */
async function planned(forge) {
  const items = range(101, 145).map((n) => ({ number: n, title: `Item ${n}`, labels: n % 2 ? ['req'] : [], ...(n <= 130 ? { state: 'closed' } : {}) }));
  const body = range(101, 147).map((n) => `- [${n <= 130 ? 'x' : ' '}] #${n} see #9999`).join('\r\n');
  await forge.control('POST', 'seed', {
    issues: [...items, { number: 3198, title: 'The plan', body }, { number: 146, title: 'Pull', pr: true, state: 'merged' }],
  });
  await forge.requests();
}

for (const version of VERSIONS) {
  test(`a flight plan of 47 items takes 3 calls, and says the same with 48 (gh ${version})`, async (t) => {
    const forge = await localForge(t, { version });
    await planned(forge);
    for (const words of [['status', '3198'], ['remaining', '3198', '--json']]) {
      const together = forge.run([process.execPath, flightplan, ...words]);
      assert.equal((await forge.requests()).length, 3);
      const alone = forge.run([process.execPath, flightplan, ...words], ALONE);
      assert.equal((await forge.requests()).length, 48);
      assert.deepEqual([together.status, together.stdout, together.stderr], [0, alone.stdout, alone.stderr]);
    }
    const { stdout } = forge.run([process.execPath, flightplan, 'remaining', '3198']);
    assert.match(stdout, /^Flight plan #3198 The plan\n {2}#131 {4}open {4}Item 131 {2}\[req\]\n/);
    assert.match(stdout, /\n47 items: 31 done, 15 open, 1 missing\n$/);
  });
}

test('a flight plan claims nothing of what it could not read', async (t) => {
  const forge = await localForge(t);
  await planned(forge);
  const run = (/** @type {string[]} */ ...words) => forge.run([process.execPath, flightplan, ...words]);
  for (const fault of [OUTAGE, LIMIT, { fault: 'drop' }]) {
    fs.rmSync(forge.at('work/.claude'), { recursive: true, force: true });
    await forge.fault(fault);
    const { status, stdout, stderr } = run('remaining', '3198');
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, /^flightplan: the plan #3198 could not be read \(the forge is (degraded|unreachable): [a-z-]+\)\n$/m);
    // The plan is read, then the forge goes away: the second batch and every single read of it fail.
    await forge.fault({ ...fault, skip: 2 });
    const half = run('remaining', '3198');
    assert.equal(half.status, 3);
    assert.match(half.stdout, /\n {2}#141 {4}unread {2}\(could not be read\)\n/);
    assert.match(half.stdout, /\n47 items: 30 done, 10 open, 7 unread\n7 could not be read: whether they remain is not established \(/);
  }
  await forge.fault(null);
  assert.equal(run('remaining', '3198').status, 0);
  // Read one by one once, then served from the cache: shown, and marked.
  const alone = (/** @type {string[]} */ ...words) => forge.run([process.execPath, flightplan, ...words], ALONE);
  alone('status', '3198');
  await forge.fault(OUTAGE);
  const cached = alone('status', '3198');
  assert.equal(cached.status, 3);
  assert.match(cached.stdout, /\n {2}#101 {4}closed {2}Item 101 {2}\[req\] {2}\(last-known state\)\n/);
  assert.match(cached.stdout, /\nthe plan itself is from the cache: its last-known state, not live\n1 could not be read.*\n46 from the cache: their last-known/);
  assert.match(cached.stderr, /^\[forge-cache\] served from cache/m);
});

test('a flight plan is also a file, and what is no plan is said', async (t) => {
  const forge = await localForge(t);
  await forge.control('POST', 'seed', { issues: [{ number: 1, title: 'One', state: 'closed' }] });
  fs.writeFileSync(forge.at('work/plan.md'), '# Plan\n\n1. #1 first\n* #1 again\nText with #7.\n');
  const run = (/** @type {string[]} */ ...words) => forge.run([process.execPath, flightplan, ...words]);
  const { status, stdout } = run('remaining', 'plan.md');
  assert.deepEqual([status, stdout], [0, 'Flight plan plan.md\n1 items: 1 done, 0 open\nnothing remains: every item was read, none is open\n']);
  assert.equal(run('remaining', '77').stderr, 'flightplan: there is no issue #77\n');
  assert.equal(run('remaining', 'nosuch.md').status, 1);
  assert.equal(run('remaining').status, 2);
});

/** Twenty todos over sixty links: three stale, one kept by a comment's silence. @param {Forge} forge */
async function todos(forge) {
  const filed = '2024-01-10T00:00:00Z';
  const link = (/** @type {number} */ n) => ({ number: n, title: `Work ${n}`, body: n === 201 ? 'This takes over #1.' : 'Work.', ...(n <= 206 ? { state: 'closed', created_at: '2024-01-01T00:00:00Z', closed_at: n === 206 ? '2024-01-05T00:00:00Z' : '2024-02-01T00:00:00Z' } : {}) });
  const linked = (/** @type {number} */ n) => ({ 1: [201], 2: [202], 3: [203, 204, 205], 4: [206], 5: [999], 6: [] }[n] ?? [206, 190 + 3 * n, 191 + 3 * n, 192 + 3 * n]);
  await forge.control('POST', 'seed', {
    labels: ['stale'],
    issues: [
      ...range(1, 20).map((n) => ({ number: n, title: `Todo ${n}`, labels: ['todo'], created_at: filed, body: `Filed by #${n}; waits for ${linked(n).map((l) => `#${l}`).join(', ')}.` })),
      ...range(201, 260).map(link),
    ],
    comments: [{ issue: 202, body: 'Done together with #2.' }, { issue: 205, body: 'See #3.' }, { issue: 203, body: 'Unrelated to #33.' }],
  });
  await forge.requests();
}

const STALE = ['STALE #3 Todo 3 — taken over by #205', 'STALE #2 Todo 2 — taken over by #202', 'STALE #1 Todo 1 — taken over by #201'];

for (const version of VERSIONS) {
  test(`the stale sweep takes a fifth of the calls and labels the same todos (gh ${version})`, async (t) => {
    const forge = await localForge(t, { version });
    await todos(forge);
    const run = (/** @type {string[]} */ words, /** @type {object} */ more) => forge.run([process.execPath, todoConsume, 'stale', ...words], more);
    const together = run(['--dry-run'], {});
    const few = (await forge.requests()).length;
    const alone = run(['--dry-run'], ALONE);
    const many = (await forge.requests()).length;
    assert.deepEqual([together.status, together.stdout, together.stderr], [alone.status, alone.stdout, alone.stderr]);
    assert.ok(few * 5 <= many, `${few} calls against ${many}`);
    assert.equal(together.status, 0);
    assert.equal(together.stdout, `${STALE.join('\n')}\n3 todos stale of 20 open\n`);
    assert.equal(run([], {}).stdout, `${STALE.map((line) => `${line} (labelled)`).join('\n')}\n3 todos stale of 20 open\n`);
    const { repos } = await forge.control('GET', 'state');
    const labelled = repos['acme/widget'].issues.filter((/** @type {any} */ one) => one.labels.includes('stale'));
    assert.deepEqual(labelled.map((/** @type {any} */ one) => one.number).sort(), [1, 2, 3]);
  });
}

test('the stale sweep claims only what was established', async (t) => {
  const forge = await localForge(t);
  await todos(forge);
  const run = () => forge.run([process.execPath, todoConsume, 'stale', '--dry-run']);
  for (const [fault, verdict] of /** @type {const} */ ([[OUTAGE, /degraded|unreachable/], [LIMIT, /rate-limited/]])) {
    // Every link's batch fails, and every read after it: nine 503s once read as "every todo has an open link".
    await forge.fault([{ ...fault, operation: 'BatchIssues' }, { ...fault, operation: 'IssueByNumber' }]);
    const { status, stdout } = run();
    assert.equal(status, 3);
    assert.equal(stdout.match(/^UNCHECKED #/gm)?.length, 19);
    assert.match(stdout, /\nno stale todos among the 1 checked — 19 todos could not be fully checked\n$/);
    assert.doesNotMatch(stdout, /every open todo/);
    // Only the comments fail: what they do not decide stands.
    await forge.fault({ ...fault, operation: 'IssueByNumber' });
    const comments = run();
    assert.match(comments.stdout, /^UNCHECKED #3 .*\nUNCHECKED #2 Todo 2 — could not read #202\nSTALE #1 .*\n1 todo stale among the 18 checked — 2 todos could not be fully checked\n$/);
    await forge.control('DELETE', 'faults');
    fs.rmSync(forge.at('work/.claude'), { recursive: true, force: true });
    await forge.fault(fault);
    const { status: failed, stdout: nothing } = run();
    assert.equal(failed, 1);
    assert.match(nothing, /^could not check: the list of todos could not be read — the forge is /);
    assert.match(nothing, verdict);
  }
  await forge.fault(null);
  assert.equal(run().status, 0);
  await forge.fault(OUTAGE);
  const cached = run();
  assert.equal(cached.status, 3);
  assert.match(cached.stdout, /^could not check: the list of todos is last-known state, not live/);
});

test('when nothing is stale, the sweep says why', async (t) => {
  const forge = await localForge(t);
  await forge.control('POST', 'seed', { issues: [{ number: 1, labels: ['todo'], title: 'T', body: 'waits for #2' }, { number: 2 }] });
  const run = () => forge.run([process.execPath, todoConsume, 'stale']).stdout;
  assert.equal(run(), 'no stale todos — every open todo has at least one open linked issue\n');
  await forge.control('POST', 'seed', { issues: [{ number: 3, labels: ['todo'], title: 'U', body: 'no links' }] });
  assert.equal(run(), 'no stale todos — 1 with an open link, 0 not taken over by a closed one, 1 without links\n');
});

const forgeMode = path.join(root, 'scripts/warp-drive/forge-mode.js');

test('a warp run goes into degraded mode and back, parks at merging, and delivers what it wrote meanwhile', async (t) => {
  const forge = await localForge(t);
  await forge.control('POST', 'seed', { issues: [{ number: 1, title: 'One' }] });
  const mode = (/** @type {string[]} */ ...words) => forge.run([process.execPath, forgeMode, ...words], { BOB_FORGE_REPLAY: '0' });
  const state = () => JSON.parse(fs.readFileSync(forge.at('work/.claude/.warp-drive-state.json'), 'utf8'));
  const gh = (/** @type {string[]} */ ...words) => forge.run(['gh', ...words], { BOB_FORGE_REPLAY: '0', BOB_FORGE_CACHE: '0' });
  fs.mkdirSync(forge.at('work/.claude'));
  fs.writeFileSync(forge.at('work/.claude/.warp-drive-state.json'), '{"item": 7}');

  // Nothing is known: nothing changes, and no call is made.
  assert.deepEqual([mode('transition', 'coding').status, state().forge.mode, state().item], [0, 'normal', 7]);
  assert.equal((await forge.requests()).length, 0);
  gh('issue', 'view', '1');
  assert.equal(mode('transition', 'merging').status, 0);

  await forge.fault(OUTAGE);
  for (let i = 0; i < 10; i += 1) gh('issue', 'view', '1');
  assert.equal(gh('issue', 'comment', '1', '--body', 'while away').status, 0);
  assert.equal(mode('transition', 'testing').status, 0);
  assert.equal(state().forge.mode, 'degraded');
  for (const push of [[], ['--push']]) {
    const parked = mode('transition', 'merging', ...push);
    assert.equal(parked.status, 3);
    assert.match(parked.stdout, /^forge: degraded mode — unreachable \(all-calls-failing\); parked at merging: the forge is unreachable/);
  }
  assert.match(mode('boundary').stdout, /^queue: 0 delivered, 1 still pending, 0 set aside — stopped: /);
  assert.equal(mode('forge-check').status, 4);
  assert.equal(state().forge.parked.phase, 'merging');

  await forge.fault(null);
  for (let i = 0; i < 10; i += 1) gh('issue', 'view', '1');
  const check = mode('forge-check');
  assert.deepEqual([check.status, check.stdout], [0, 'forge: normal mode — operational (recent-calls-succeeded) — resumed, merging may go on\n']);
  const boundary = mode('boundary');
  assert.deepEqual([boundary.status, boundary.stdout], [0, 'queue: 1 delivered, 0 still pending, 0 set aside\n']);
  const { repos } = await forge.control('GET', 'state');
  assert.deepEqual(repos['acme/widget'].issues[0].comments.map((/** @type {any} */ one) => one.body), ['while away']);
  assert.equal(mode('transition', 'merging').status, 0);
});

test('a rate limit parks a merge, but never a plain push', async (t) => {
  const forge = await localForge(t);
  const mode = (/** @type {string[]} */ ...words) => forge.run([process.execPath, forgeMode, ...words]).status;
  await forge.fault(LIMIT);
  forge.run(['gh', 'issue', 'list']);
  assert.deepEqual([mode('transition', 'merging', '--push'), mode('transition', 'merging'), mode('status')], [0, 3, 3]);
  assert.deepEqual([mode('transition', 'coding'), mode('status'), mode('nosuch')], [0, 0, 2]);
});

const collect = path.join(root, 'scripts/brief/collect.js');

test('a brief gives no count for what it could not read, and waits out a limit', async (t) => {
  const forge = await localForge(t);
  await forge.control('POST', 'seed', { issues: [{ number: 1, title: 'One', labels: ['bug'], assignees: ['monalisa'] }, { number: 2, title: 'Two' }] });
  const run = (/** @type {string[]} */ words, /** @type {object} */ more = {}) => forge.run([process.execPath, collect, ...words], more);
  const healthy = run([]);
  assert.deepEqual([healthy.status, healthy.stderr], [0, '']);
  assert.match(healthy.stdout, /^open in this repository: 2 — #2 Two, #1 One\nasked by: 1 — monalisa\nassigned: 1 — #1 One\nreviews requested: 0\n$/);
  await forge.control('POST', 'seed', { repo: 'acme/big', issues: range(1, 101).map((number) => ({ number })) });
  assert.match(run(['--repo', 'acme/big']).stdout, /^open in acme\/big: at least 100 — /);
  await forge.fault({ ...OUTAGE, path: '/search' });
  const half = run(['--json']);
  assert.equal(half.status, 3);
  assert.deepEqual(JSON.parse(half.stdout).parts.map((/** @type {any} */ part) => part.gap ?? part.items.length), [2, 1, 'last-known state, not live', 'server']);
  await forge.fault({ fault: 'drop' });
  assert.match(run([]).stdout, /\n4 of 4 parts could not be read: this brief is not complete\n$/);
  // The quota is spent, and full again after one more run of the shim's own patience.
  fs.writeFileSync(forge.at('nap'), '#!/bin/sh\n', { mode: 0o755 });
  await forge.fault({ fault: 'secondary', retry_after_s: null, times: 2, path: '/repos' });
  const limited = run(['--json', '--repo', 'acme/widget'], { BOB_FORGE_BUDGET: '1', BOB_FORGE_SLEEP: forge.at('nap'), BOB_FORGE_BACKOFF_MAX: '4' });
  const parts = JSON.parse(limited.stdout).parts;
  assert.deepEqual([limited.status, parts[0].attempts, parts[0].items.length], [0, 2, 2]);
  const callers = fs.readFileSync(forge.at('bob/forge/observations.log'), 'utf8').trim().split('\n').map((line) => line.split('\t')[7]);
  assert.deepEqual([...new Set(callers)], ['work/brief']);
});

const audit = path.join(root, 'scripts/audit.js');

test('the fleet snapshot carries the verdict, what is undelivered and the quota, and makes no call', async (t) => {
  const forge = await localForge(t);
  await forge.control('POST', 'seed', { issues: [{ number: 1, title: 'One' }] });
  const run = (/** @type {string[]} */ ...words) => forge.run([process.execPath, audit, ...words]);
  const quiet = JSON.parse(run('snapshot').stdout);
  assert.deepEqual([quiet.summary.forge.state, quiet.summary.forge_queue, quiet.summary.quota.graphql], ['unknown', { pending: 0, set_aside: 0, unknown: 0 }, null]);
  await forge.fault(OUTAGE);
  forge.run(['gh', 'issue', 'comment', '1', '--body', 'x']);
  await forge.requests();
  const { summary, projects } = JSON.parse(run('snapshot').stdout);
  assert.deepEqual([summary.forge.state, summary.forge_queue.pending, projects.length, projects[0].forge_queue.depth], ['unreachable', 1, 1, 1]);
  fs.writeFileSync(forge.at('other.json'), JSON.stringify({ ...quiet, machine: 'farm-01' }));
  fs.writeFileSync(forge.at('mine.json'), run('snapshot').stdout);
  const view = run('view', forge.at('mine.json'), forge.at('other.json')).stdout;
  assert.match(view, /^Forge\n {2}machine .*\n.* unreachable {2}all-calls-failing {2}0\/1 {7}-\n {2}farm-01 .*unknown/);
  assert.match(view, /\nUndelivered writes\n {2}machine .*\n.* work {5}1 /);
  assert.match(view, /\nGitHub quota\n[^]*rate-limited answers this week: 0 \(target 0\)\n$/);
  assert.equal((await forge.requests()).length, 0);
  await forge.fault(null);
  for (let i = 0; i < 10; i += 1) forge.run(['gh', 'issue', 'view', '1']);
  const after = JSON.parse(run('snapshot').stdout).summary;
  assert.deepEqual([after.forge.state, after.forge_queue.pending], ['operational', 0]);
  assert.equal(run('nosuch').status, 2);
});

test('under a rate limit the snapshot says so, and a write that waits is undelivered, not lost', async (t) => {
  const forge = await localForge(t);
  await forge.control('POST', 'seed', { issues: [{ number: 1, title: 'One' }] });
  await forge.fault(LIMIT);
  const limited = forge.run(['gh', 'issue', 'comment', '1', '--body', 'x']);
  assert.match(limited.stderr, /^\[forge-queue\] not delivered yet — the live call failed \(ratelimit\)/m);
  const snapshot = () => JSON.parse(forge.run([process.execPath, audit, 'snapshot']).stdout).summary;
  const during = snapshot();
  assert.deepEqual([during.forge.state, during.forge.reason, during.forge_queue.pending], ['degraded', 'rate-limited', 1]);
  await forge.fault(null);
  for (let i = 0; i < 10; i += 1) forge.run(['gh', 'issue', 'view', '1']);
  assert.deepEqual([snapshot().forge.state, snapshot().forge_queue.pending], ['operational', 0]);
});

test("bob doctor prints the quota's line", async (t) => {
  const forge = await localForge(t);
  const home = forge.at('bob');
  for (const folder of ['bin', 'scripts/cli']) fs.mkdirSync(path.join(home, folder), { recursive: true });
  fs.symlinkSync(path.join(root, 'scripts/cli/bob'), path.join(home, 'bin/bob'));
  fs.symlinkSync(path.join(target, 'deploy/forge'), path.join(home, 'scripts/cli/forge'));
  assert.equal(forge.run([path.join(home, 'bin/bob'), 'doctor']).stdout, 'INFO forge quota: not read yet; no rate-limited answer this week\n');
});

test('bob says what it knows when it is asked, and only then is that no error', (t) => {
  const { options } = scene(t);
  const bob = (/** @type {string[]} */ ...words) => spawnSync(path.join(root, 'scripts/cli/bob'), words, { env: options.env, encoding: 'utf8' });
  for (const words of [['--help'], ['-h'], ['help']]) {
    const { status, stdout, stderr } = bob(...words);
    assert.deepEqual([status, stderr, stdout.startsWith('usage: bob forge ')], [0, '', true], words.join());
  }
  for (const words of [[], ['nosuch']]) {
    const { status, stdout, stderr } = bob(...words);
    assert.deepEqual([status, stdout, stderr.includes('bob forge')], [2, '', true], words.join());
  }
});

test('a plan that is no file says so in one line', (t) => {
  const { at, options } = scene(t);
  fs.mkdirSync(at('project/folder'));
  for (const [plan, why] of [['nosuch.md', 'there is no such file'], ['folder', 'EISDIR']]) {
    const env = { ...options.env, FORGE_HEALTH_ADDON: process.env.FORGE_HEALTH_ADDON };
    const ran = spawnSync(process.execPath, [flightplan, 'status', plan], { env, cwd: options.cwd, encoding: 'utf8' });
    assert.deepEqual([ran.status, ran.stdout], [1, '']);
    assert.match(ran.stderr, new RegExp(`^flightplan: the plan ${plan} cannot be read: ${why}.*; name the number of an issue, or a Markdown file\\n$`));
  }
});

test('the figures of the README: calls before and after, as measure counts them', async (t) => {
  const forge = await localForge(t);
  await planned(forge);
  await todos(forge);
  const measured = (/** @type {string[]} */ words, /** @type {object} */ more) => {
    const { stdout } = forge.run([process.execPath, path.join(root, 'scripts/forge/budget.js'), 'measure', '--json', '--', process.execPath, ...words], more);
    const { calls, wallMs } = JSON.parse(stdout);
    return { calls, wallMs };
  };
  /** @type {[string[], number, number][]} */
  const table = [
    [[flightplan, 'status', '3198'], 48, 3],
    [[flightplan, 'remaining', '3198', '--json'], 48, 3],
    [[todoConsume, 'stale', '--dry-run'], 54, 7],
  ];
  for (const [words, before, after] of table) {
    const [alone, together] = [measured(words, ALONE), measured(words, {})];
    t.diagnostic(`${path.basename(words[0])} ${words.slice(1).join(' ')}: ${alone.calls} calls, ${alone.wallMs} ms -> ${together.calls} calls, ${together.wallMs} ms`);
    assert.deepEqual([alone.calls, together.calls], [before, after]);
    assert.ok(together.wallMs < alone.wallMs);
  }
});

test('from a deployed home the scripts work, are measured by the shim deployed there, and give way to a file that was there', async (t) => {
  const forge = await localForge(t);
  await planned(forge);
  const home = forge.at('bob');
  fs.mkdirSync(path.join(home, 'scripts/todo'), { recursive: true });
  fs.writeFileSync(path.join(home, 'scripts/todo/todo-consume.js'), '// another\'s\n');
  const deployed = forge.run([path.join(root, 'scripts/deploy.sh'), '--no-build'], { CARGO_TARGET_DIR: target });
  assert.equal(deployed.status, 0, deployed.stderr);
  assert.match(deployed.stdout, /^left +scripts\/todo\/todo-consume\.js /m);
  assert.equal(fs.readFileSync(path.join(home, 'scripts/todo/todo-consume.js'), 'utf8'), '// another\'s\n');
  const PATH = `${path.join(home, 'bin')}:${forge.env.PATH}`;
  const words = [path.join(home, 'scripts/warp-drive/flightplan.js'), 'status', '3198'];
  const run = forge.run([process.execPath, path.join(home, 'scripts/forge/budget.js'), 'measure', '--json', '--', process.execPath, ...words], { PATH });
  assert.equal(JSON.parse(run.stdout).calls, 3);
  assert.match(run.stderr, /\n47 items: 31 done, 15 open, 1 missing\n/);
  const groom = path.join(home, 'scripts/groom/groom.sh');
  assert.equal(fs.statSync(groom).mode & 0o111, 0o111);
});
