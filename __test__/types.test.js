'use strict';
const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { root } = require('./scene.js');

test('index.d.ts, the modules behind it and a typed caller agree', () => {
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const { status, stdout, stderr } = spawnSync(process.execPath, [tsc], { cwd: root, encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
});

// Callers of an installed home, far from any checkout. A module without types would be an error (TS7016), and so
// would a line marked as wrong that is not.
const CALLERS = {
  'common.ts': `import health = require('HOME/scripts/forge/health');
const state: health.State = health.status({ probe: false }).state;
// @ts-expect-error numbers are numbers
health.status({ ttl: '60' });
export { state };
`,
  'module.mts': `import { isTrustworthy, type Status } from 'HOME/scripts/forge/health.js';
import { readIssues } from 'HOME/scripts/forge/batch.js';
import * as queue from 'HOME/scripts/forge/queue.js';
const trusted: boolean = isTrustworthy();
const waiting: string[] = queue.drop(3).dependents;
const closed: string | null | undefined = readIssues([1], { fields: ['closedAt'] }).issues.get(1)?.closedAt;
// @ts-expect-error the title was not asked for
readIssues([1], { fields: ['state'] }).issues.get(1)?.title;
export { closed, trusted, waiting, type Status };
`,
  'plain.js': `const budget = require('HOME/scripts/forge/budget.js');
const patient = require('HOME/scripts/forge/patient.js');
const cache = require('HOME/scripts/forge/cache.js');
/** @type {number} */
exports.calls = budget.measure(['true']).calls;
/** @type {Promise<string>} */
exports.text = patient.run(() => 'text', ['issue', 'list']).then((r) => r.stdout);
/** @type {boolean} */
exports.cached = cache.isCacheable(['issue', 'list']);
`,
};

test('an installed home has the types of its modules', (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'forge-'));
  t.after(() => fs.rmSync(folder, { recursive: true, force: true }));
  const home = path.join(folder, 'home');
  const env = { PATH: process.env.PATH, HOME: folder, BOB_HOME: home };
  const deployed = spawnSync(path.join(root, 'scripts/deploy.sh'), ['--no-build'], { env, encoding: 'utf8' });
  assert.equal(deployed.status, 0, deployed.stdout + deployed.stderr);
  for (const [name, text] of Object.entries(CALLERS)) fs.writeFileSync(path.join(folder, name), text.replaceAll('HOME', home));
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
  const types = ['--types', 'node', '--typeRoots', path.join(root, 'node_modules/@types')];
  const words = ['--noEmit', '--strict', '--allowJs', '--checkJs', '--target', 'es2022', '--module', 'node16', ...types];
  // What is checked is what a caller sees: the modules' own code is not in question, only its declarations.
  const ran = spawnSync(process.execPath, [tsc, ...words, ...Object.keys(CALLERS)], { cwd: folder, encoding: 'utf8' });
  assert.equal(ran.status, 0, ran.stdout + ran.stderr);
});
