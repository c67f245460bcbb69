#!/usr/bin/env node
'use strict';
// How a warp run lives through a forge that is down: it codes, tests and commits on, and parks where it must not guess.
//
//   forge-mode.js transition PHASE [--push]   before entering a phase: folds the verdict into state.forge
//   forge-mode.js boundary                    between two items: delivers what is queued
//   forge-mode.js forge-check                 the one place that asks the forge; resumes a parked run
//   forge-mode.js status                      what state.forge says
//
// The run's state is .claude/.warp-drive-state.json in the working directory (BOB_WARP_STATE names another); only its
// `forge` is touched: {mode: normal|degraded, state, reason, since, checkedAt, parked: null|{phase, reason, at}, replay}.
// `merging` is the phase that parks. A plain `git push` (--push) spends no API quota: it never parks on a rate limit.
//
// Exit 0: go on. 3: parked, or something is still queued. forge-check: the verdict's own code. 2: usage.

const fs = require('node:fs');
const path = require('node:path');
const health = require('../forge/health.js');
const queue = require('../forge/queue.js');

/**
 * @typedef {{phase: string, reason: string, at: number}} Parked
 * @typedef {{mode: 'normal' | 'degraded', state: string, reason: string, since: number, checkedAt: number, parked: Parked | null, replay?: object}} Mode
 * @typedef {{state: string, reason: string, checkedAt: number}} Verdict
 */

/**
 * The mode after a verdict. `unknown` is no verdict: it changes what is known, not how the run works.
 * @param {Mode | undefined} before
 * @param {Verdict} verdict
 * @returns {Mode}
 */
exports.fold = (before, { state, reason, checkedAt }) => {
  const was = before?.mode ?? 'normal';
  const mode = state === 'operational' ? 'normal' : state === 'unknown' ? was : 'degraded';
  const since = before && mode === was ? before.since : checkedAt;
  return { ...before, mode, state, reason, since, checkedAt, parked: before?.parked ?? null };
};

/**
 * The mode after a phase was asked for: parked, or free to enter it.
 * @param {Mode} mode
 * @param {string} phase
 * @param {{push?: boolean}} [how]
 * @returns {Mode}
 */
exports.enter = (mode, phase, { push = false } = {}) => {
  const limited = mode.reason === 'rate-limited';
  const blocked = phase === 'merging' && mode.mode === 'degraded' && !(push && limited);
  const parked = blocked ? { phase, reason: `the forge is ${mode.state} (${mode.reason})`, at: mode.checkedAt } : null;
  return { ...mode, parked };
};

const file = () => process.env.BOB_WARP_STATE || path.join(process.cwd(), '.claude/.warp-drive-state.json');

/** @returns {{forge?: Mode}} */
function load() {
  try {
    return JSON.parse(fs.readFileSync(file(), 'utf8'));
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return {};
    throw error;
  }
}

/** @param {{forge?: Mode}} state @param {Mode} mode */
function save(state, mode) {
  const aside = `${file()}.${process.pid}`;
  fs.mkdirSync(path.dirname(file()), { recursive: true });
  fs.writeFileSync(aside, `${JSON.stringify({ ...state, forge: mode }, null, 2)}\n`);
  fs.renameSync(aside, file());
}

/** @param {Mode | undefined} mode */
function line(mode) {
  if (!mode) return 'forge: not looked at yet';
  const parked = mode.parked ? `; parked at ${mode.parked.phase}: ${mode.parked.reason}` : '';
  return `forge: ${mode.mode} mode — ${mode.state} (${mode.reason})${parked}`;
}

/** Delivers what is queued; only where this machine has marked the project. Another replay at work is no failure. */
function replay() {
  try {
    return queue.replay({ apply: true, markedOnly: true });
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EFORGE_BUSY') throw error;
    process.stdout.write(`queue: ${/** @type {Error} */ (error).message}\n`);
    return null;
  }
}

/** @param {string[]} words */
function main(words) {
  const push = words.includes('--push');
  const [verb, phase, ...rest] = words.filter((word) => word !== '--push');
  const state = load();
  if (verb === 'transition' && phase && !rest.length) {
    const mode = exports.enter(exports.fold(state.forge, health.status({ probe: false })), phase, { push });
    save(state, mode);
    process.stdout.write(`${line(mode)}\n`);
    return mode.parked ? 3 : 0;
  }
  if (verb === 'boundary' && !phase) {
    const report = replay();
    const mode = exports.fold(state.forge, health.status({ probe: false }));
    save(state, report ? { ...mode, replay: report } : mode);
    if (!report) return 3;
    const { delivered, pending, setAside, stopped } = report;
    const why = stopped ? ` — stopped: ${typeof stopped === 'string' ? stopped : JSON.stringify(stopped)}` : '';
    process.stdout.write(`queue: ${delivered} delivered, ${pending} still pending, ${setAside} set aside${why}\n`);
    return report.exitCode;
  }
  if (verb === 'forge-check' && !phase) {
    const verdict = health.status();
    const mode = exports.fold(state.forge, verdict);
    const was = mode.parked;
    if (verdict.state === 'operational') mode.parked = null;
    save(state, mode);
    process.stdout.write(`${line(mode)}${was && !mode.parked ? ` — resumed, ${was.phase} may go on` : ''}\n`);
    return health.EXIT_CODES[verdict.state];
  }
  if (verb === 'status' && !phase) {
    process.stdout.write(`${line(state.forge)}\n`);
    return state.forge?.parked ? 3 : 0;
  }
  process.stderr.write('usage: forge-mode.js transition PHASE [--push] | boundary | forge-check | status\n');
  return 2;
}

if (require.main === module) {
  try {
    process.exitCode = main(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`forge-mode: ${/** @type {Error} */ (error).message}\n`);
    process.exitCode = 1;
  }
}
