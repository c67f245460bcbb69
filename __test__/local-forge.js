'use strict';
// A checkout of acme/widget, the real gh, the shim in front of it, and a forge of its own for a test.

const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');

const root = path.join(__dirname, '..');
const target = path.join(root, 'target');

/** The two versions of gh that answers are checked with. */
exports.VERSIONS = ['debian', 'wheel'];

/**
 * @param {import('node:test').TestContext} t
 * @param {{version?: string, shim?: boolean}} [options] which gh, and whether the shim is in front of it
 */
exports.localForge = async (t, { version = 'wheel', shim = true } = {}) => {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'forge-'));
  const at = (/** @type {string} */ name) => path.join(home, name);
  const server = spawn(process.execPath, [
    path.join(root, 'tests/support/forge/main.js'), 'serve', '--socket', at('s'), '--until-stdin-closes',
  ], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => {
    server.kill();
    fs.rmSync(home, { recursive: true, force: true });
  });
  for (const folder of ['config', 'real', 'work']) fs.mkdirSync(at(folder));
  fs.writeFileSync(at('config/config.yml'), `http_unix_socket: ${at('s')}\nprompt: disabled\n`);
  const real = path.join(target, 'gh', version);
  const bin = path.join(target, 'deploy');
  // One folder a program: `deploy` holds more than the shim.
  fs.symlinkSync(path.join(shim ? bin : real, 'gh'), at('real/gh'));
  const env = {
    HOME: home, BOB_HOME: at('bob'), GH_CONFIG_DIR: at('config'), GH_TOKEN: 'fake', GH_NO_UPDATE_NOTIFIER: '1', GH_TELEMETRY: '0',
    PATH: [at('real'), real, path.dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
    // A limit is met at once; a test of waiting turns the gate on again.
    GIT_CONFIG_GLOBAL: '/dev/null', BOB_FORGE_BUDGET: '0',
  };
  const git = (/** @type {string[]} */ ...args) => spawnSync('git', args, { cwd: at('work'), env });
  git('init', '-q');
  git('remote', 'add', 'origin', 'https://github.com/acme/widget.git');
  await new Promise((resolve, reject) => {
    server.stdout.once('data', resolve);
    server.once('exit', () => reject(new Error('the local forge ended')));
  });

  /**
   * @param {string} method
   * @param {string} door below `/_forge/`
   * @param {unknown} [body]
   * @returns {Promise<any>}
   */
  const control = (method, door, body) => new Promise((resolve, reject) => {
    const request = http.request({ socketPath: at('s'), method, path: `/_forge/${door}` }, (response) => {
      let text = '';
      response.on('data', (piece) => { text += piece; });
      response.on('end', () => {
        if (response.statusCode === undefined || response.statusCode >= 300) reject(new Error(`${method} ${door}: ${text}`));
        else resolve(text ? JSON.parse(text) : null);
      });
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });

  return {
    at,
    env,
    control,
    options: { env, cwd: at('work') },
    /** Faults from now on, in place of the ones before. @param {unknown} fault */
    fault: async (fault) => {
      await control('DELETE', 'faults');
      if (fault) await control('POST', 'fault', fault);
    },
    /** The requests that reached the forge since the last look. @returns {Promise<any[]>} */
    requests: async () => {
      const log = await control('GET', 'log');
      await control('DELETE', 'log');
      return log.filter((/** @type {any} */ one) => one.path !== '/rate_limit');
    },
    /** The gh itself. @param {string[]} args @param {object} [more] */
    gh: (args, more = {}) => spawnSync(path.join(real, 'gh'), args, { cwd: at('work'), env: { ...env, ...more }, encoding: 'utf8' }),
    /** A program in this home. @param {string[]} words @param {object} [more] */
    run: (words, more = {}) => spawnSync(words[0], words.slice(1), { cwd: at('work'), env: { ...env, ...more }, encoding: 'utf8' }),
  };
};

exports.root = root;
exports.target = target;
