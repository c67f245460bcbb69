'use strict';
// groom.sh with a scripted claude: the retry after the reset, and a trailer whatever happens.
const assert = require('node:assert/strict');
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const { root, scene } = require('./scene.js');

const groom = path.join(root, 'scripts/groom/groom.sh');

/**
 * A claude that does one line of shell a run, and what became of it.
 * @param {import('node:test').TestContext} t
 * @param {string[]} runs
 * @param {Record<string, string | number>} [more] variables, or a reset on file in so many seconds (`reset`)
 */
function groomed(t, runs, { reset, ...more } = {}) {
  const { at, options } = scene(t);
  const steps = runs.map((run, i) => `${i + 1}) ${run} ;;`).join('\n');
  fs.writeFileSync(at('bin/claude'), `#!/bin/sh
echo x >> '${at('runs')}'; printf '%s\\n' "$*" > '${at('args')}'; echo "$BOB_FORGE_CALLER" > '${at('caller')}'
case $(wc -l < '${at('runs')}' | tr -d ' ') in
${steps}
esac
`, { mode: 0o755 });
  fs.writeFileSync(at('bin/nap'), `#!/bin/sh\necho "$1" >> '${at('naps')}'\n`, { mode: 0o755 });
  if (reset !== undefined) {
    fs.mkdirSync(at('bob/forge'), { recursive: true });
    const ends = Math.floor(Date.now() / 1000) + Number(reset);
    fs.writeFileSync(at('bob/forge/budget.env'), `graphql_remaining=4000\ngraphql_reset=${ends - 100}\ncore_remaining=3\ncore_reset=${ends}\n`);
  }
  const env = { ...options.env, BOB_FORGE_SLEEP: at('bin/nap'), ...Object.fromEntries(Object.entries(more).map(([k, v]) => [k, String(v)])) };
  const { status, stdout, stderr } = spawnSync(groom, ['--model', 'x'], { ...options, env, encoding: 'utf8' });
  const read = (/** @type {string} */ name) => (fs.existsSync(at(name)) ? fs.readFileSync(at(name), 'utf8') : '');
  return { status, stdout, stderr, runs: read('runs').length / 2, naps: read('naps').trim().split('\n').filter(Boolean).map(Number), args: read('args'), caller: read('caller') };
}

const LIMIT = "echo 'API rate limit exceeded for user'";

test('a run that ends with its line is passed on as it is', (t) => {
  const run = groomed(t, ["echo working; echo 'GROOM-RESULT: closed=3'"]);
  assert.deepEqual([run.status, run.stdout, run.runs], [0, 'working\nGROOM-RESULT: closed=3\n', 1]);
  assert.match(run.args, /^-p \/groom\n[^]*a wait: let it finish\. Run a rate-limited command again\.\nNever stop[^]*--model x\n$/);
  assert.equal(run.caller, 'groom\n');
});

test('a run that ended over a rate limit is run once more after the reset', (t) => {
  const run = groomed(t, [`${LIMIT}; exit 1`, "echo 'GROOM-RESULT: closed=1'"], { reset: 400 });
  assert.deepEqual([run.status, run.runs], [0, 2]);
  assert.ok(run.naps.length === 1 && run.naps[0] > 400 && run.naps[0] <= 405, String(run.naps));
  assert.match(run.stdout, /GROOM-RESULT: closed=1\n$/);
});

test('the wait is a minute when no reset is on file, and never longer than it may be', (t) => {
  assert.deepEqual(groomed(t, [LIMIT, LIMIT]).naps, [60]);
  assert.deepEqual(groomed(t, [LIMIT, LIMIT], { reset: -10 }).naps, [60]);
  assert.deepEqual(groomed(t, [LIMIT, LIMIT], { reset: 9_000, BOB_GROOM_RETRY_MAX_WAIT: 700 }).naps, [700]);
});

test('a run always ends with a trailer, and with a code that is not zero', (t) => {
  /** @type {[string[], object, string, number, number][]} */
  const table = [
    [[LIMIT, `${LIMIT}; exit 7`, "echo 'GROOM-RESULT: never'"], {}, 'rate-limit', 7, 2],
    [[LIMIT, 'echo nothing'], {}, 'no-result-line', 3, 2],
    [['echo nothing'], {}, 'no-result-line', 3, 1],
    [['exit 9'], {}, 'claude-failed', 9, 1],
    [['kill -9 $$'], {}, 'claude-failed', 137, 1],
    [['exec sleep 30'], { BOB_GROOM_TIMEOUT: 1 }, 'timeout', 124, 1],
    [[''], { BOB_GROOM_CLAUDE: '/nowhere/claude' }, 'claude-failed', 127, 0],
  ];
  for (const [runs, more, reason, status, times] of table) {
    const run = groomed(t, runs, more);
    assert.match(run.stdout, new RegExp(`(^|\\n)GROOM-RESULT: result=null incomplete=1 reason=${reason}\\n$`));
    assert.deepEqual([run.status, run.runs], [status, times], reason);
  }
});

test('a signal to groom reaches the model, and the run still has its trailer', async (t) => {
  const { at, options } = scene(t);
  fs.writeFileSync(at('bin/claude'), `#!/bin/sh\ntrap 'echo told to end; exit 0' TERM\necho started\nwhile :; do sleep 0.05; done\n`, { mode: 0o755 });
  const child = spawn(groom, [], { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (piece) => {
    out += piece;
    if (out === 'started\n') child.kill('SIGTERM');
  });
  const code = await new Promise((resolve) => { child.on('close', resolve); });
  assert.deepEqual([code, out], [143, 'started\ntold to end\nGROOM-RESULT: result=null incomplete=1 reason=claude-failed\n']);
});
