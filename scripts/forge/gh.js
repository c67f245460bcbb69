'use strict';
// How the scripts read: every answer comes with whether it was given live, so that none claims what was not read.

const { spawn } = require('node:child_process');
const { readIssues } = require('./batch.js');
const { classifySignal } = require('./health.js');

/**
 * Runs gh and waits for it. What the shim says meanwhile (`[forge-budget] waiting …`) is passed on at once; gh's
 * own messages are kept.
 * @param {string[]} args
 * @param {{timeout?: number, env?: NodeJS.ProcessEnv, input?: string}} [options]
 * @returns {Promise<{code: number | null, stdout: string, stderr: string, outcome: string, timedOut: boolean, live: boolean}>}
 */
exports.gh = (args, { timeout, env = process.env, input } = {}) => new Promise((resolve) => {
  const child = spawn('gh', args, { env, timeout, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
  let [stdout, stderr, unseen] = ['', '', ''];
  child.stdout?.setEncoding('utf8').on('data', (piece) => { stdout += piece; });
  child.stderr?.setEncoding('utf8').on('data', (piece) => {
    stderr += piece;
    const lines = (unseen + piece).split('\n');
    unseen = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('[forge-')) process.stderr.write(`${line}\n`);
  });
  child.stdin?.on('error', () => {}).end(input);
  const done = (/** @type {number | null} */ code, /** @type {string} */ outcome, /** @type {boolean} */ timedOut) => {
    resolve({ code, stdout, stderr, outcome, timedOut, live: !/^\[forge-(cache|queue)\] /m.test(stderr) });
  };
  child.on('error', (error) => {
    stderr += error.message;
    done(null, 'other', false);
  });
  // Only the time limit kills it from here.
  child.on('close', (code) => done(code, child.killed ? 'net' : classifySignal(code, stderr, args), child.killed));
});

/**
 * Reads issues once in the life of a process: together ahead of time, then one by one from what was read. With
 * `BOB_FORGE_BATCH=0` nothing is read together, and every answer is the same.
 * @template {import('../../index.js').batch.Field} F
 * @param {F[]} fields
 */
exports.issueStore = (fields) => {
  /** @typedef {{issue?: import('../../index.js').batch.Issue, missing?: boolean, live: boolean}} Answer */
  /** @type {Map<number, Answer>} */
  const known = new Map();
  const keep = (/** @type {any} */ { issues, missing, unread, cached = [] }, /** @type {boolean} */ final) => {
    for (const [number, issue] of issues) known.set(number, { issue, live: !cached.includes(number) });
    for (const number of missing) known.set(number, { missing: true, live: true });
    if (final) for (const number of unread) known.set(number, { live: false });
  };
  return {
    /** Reads ahead; what cannot be read together is left to {@link one}. @param {number[]} numbers */
    ahead(numbers) {
      if (process.env.BOB_FORGE_BATCH === '0') return;
      keep(readIssues(numbers.filter((number) => !known.has(number)), { fields }), false);
    },
    /** One issue; neither `issue` nor `missing` means that it could not be read. @param {number} number @returns {Answer} */
    one(number) {
      if (!known.has(number)) {
        keep(readIssues([number], { fields, env: { ...process.env, BOB_FORGE_BATCH: '0' } }), true);
      }
      return /** @type {Answer} */ (known.get(number));
    },
  };
};
