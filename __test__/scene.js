'use strict';
// A home of its own for a test: a state folder, and a `gh` that does what a line of shell says.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

/**
 * @param {import('node:test').TestContext} t
 * @param {string} [script] what gh does
 */
exports.scene = (t, script = 'exit 0') => {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'forge-'));
  t.after(() => fs.rmSync(home, { recursive: true, force: true }));
  const at = (/** @type {string} */ name) => path.join(home, name);
  fs.mkdirSync(at('bin'));
  fs.mkdirSync(at('project'));
  fs.writeFileSync(at('bin/gh'), `#!/bin/sh\necho "$*|$MARK" >> '${at('calls')}'\n${script}\n`, { mode: 0o755 });
  const env = { HOME: home, BOB_HOME: at('bob'), PATH: `${at('bin')}:/usr/bin:/bin`, MARK: 'seen' };
  return {
    at,
    options: { env, cwd: at('project') },
    log: at('bob/forge/observations.log'),
    /** @returns {string[]} */
    calls: () => (fs.existsSync(at('calls')) ? fs.readFileSync(at('calls'), 'utf8').trimEnd().split('\n') : []),
  };
};

exports.root = path.join(__dirname, '..');
