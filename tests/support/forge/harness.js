'use strict';
// What the forge's own tests share: a running forge in a folder of its own, and the real gh pointed at it.

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '..', '..', '..');

/** The two versions under test, each with what its error texts add. `scripts/install-test-gh.sh` puts them there. */
const VERSIONS = [
  { name: 'debian', gh: path.join(ROOT, 'target', 'gh', 'debian', 'gh'), old: true },
  { name: 'wheel', gh: path.join(ROOT, 'target', 'gh', 'wheel', 'gh'), old: false },
];

/** Runs a command to its end: `{code, signal, stdout, stderr}`. `input` is its stdin. */
function run(command, args, { env, cwd, input = '', onSpawn } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, cwd });
    const out = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr']) child[name].setEncoding('utf8').on('data', (text) => { out[name] += text; });
    child.on('error', reject).on('close', (code, signal) => resolve({ code, signal, ...out }));
    child.stdin.on('error', () => {}).end(input);
    onSpawn?.(child);
  });
}

/** Starts a forge; `stop()` ends it and removes its folder. */
async function startForge({ args = [] } = {}) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'forge-'));
  const socket = path.join(dir, 's');
  fs.writeFileSync(path.join(dir, 'config.yml'), `http_unix_socket: ${socket}\nprompt: disabled\n`);
  const server = spawn(process.execPath, [path.join(__dirname, 'main.js'), 'serve', '--socket', socket, '--until-stdin-closes', ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await new Promise((resolve, reject) => {
    server.stdout.once('data', resolve);
    server.once('exit', (code) => reject(new Error(`the forge ended with ${code}`)));
  });
  const env = {
    PATH: process.env.PATH, HOME: dir, XDG_STATE_HOME: dir, XDG_CACHE_HOME: dir, XDG_DATA_HOME: dir, TMPDIR: dir,
    GH_CONFIG_DIR: dir, GH_TOKEN: 'fake', GH_NO_UPDATE_NOTIFIER: '1', GH_TELEMETRY: '0', GH_REPO: 'acme/widget',
  };
  const forge = {
    dir, socket, server, env,
    gh: (version, argv, options) => {
      if (!fs.existsSync(version.gh)) throw new Error(`${version.gh} is missing: run scripts/install-test-gh.sh`);
      return run(version.gh, argv, { env, cwd: dir, ...options });
    },
    control: (method, what, body) => control(socket, method, `/_forge/${what}`, body),
    issue: async (number) => (await forge.control('GET', 'state')).repos['acme/widget'].issues.find((one) => one.number === number),
    stop: async () => {
      const ended = new Promise((resolve) => { server.once('exit', resolve); });
      server.stdin.end();
      await ended;
      fs.rmSync(dir, { recursive: true, force: true });
    },
  };
  return forge;
}

/** One request over the socket; rejects on a status of 400 and above. */
function control(socketPath, method, where, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, method, path: where }, (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (chunk) => { text += chunk; }).on('end', () => {
        if (res.statusCode < 400) resolve(JSON.parse(text));
        else reject(new Error(`${method} ${where}: ${text}`));
      });
    });
    request.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

module.exports = { VERSIONS, ROOT, run, startForge };
