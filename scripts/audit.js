#!/usr/bin/env node
'use strict';
// The fleet snapshot of one machine, and the view over the snapshots of several.
//
//   audit.js snapshot [--project PATH]...    prints this machine's snapshot (bob-fleet-snapshot/1)
//   audit.js view [FILE]...                  renders snapshots; without a file, this machine's own
//
// summary.forge is per machine on purpose: network path and credentials differ per host. summary.forge_queue answers the
// other half of the question: did everything that was written land? summary.quota is GitHub's, compact. The projects are
// those of --project, else the working directory's and every one that this machine has marked as having queued writes.
// No call is made of the forge.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const budget = require('./forge/budget.js');
const health = require('./forge/health.js');
const queue = require('./forge/queue.js');

/** @typedef {Record<string, any>} Document */

/** The projects that have undelivered writes of this machine, by the breadcrumb the queue leaves. */
function marked() {
  const home = process.env.BOB_HOME || path.join(os.homedir(), '.claude');
  const file = path.join(process.env.BOB_FORGE_STATE || path.join(home, 'forge'), 'queue-dirty');
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
}

/** A project's queue, or why it is not known. @param {string} project @returns {Document} */
function queueOf(project) {
  try {
    return queue.overview({ cwd: project });
  } catch (error) {
    return { error: /** @type {Error} */ (error).message };
  }
}

/** @param {string[]} projects @returns {Document} */
function snapshot(projects) {
  const { state, reason, causes, sample, cache } = health.status({ probe: false });
  const queues = projects.map((project) => ({ path: project, name: path.basename(project), forge_queue: queueOf(project) }));
  const sum = (/** @type {(queue: Document) => number} */ of) => queues.reduce((n, { forge_queue: spool }) => n + of(spool), 0);
  const setAside = (/** @type {Document} */ spool) => Object.values(spool.setAside ?? {}).reduce((n, times) => n + times, 0);
  return {
    schema: 'bob-fleet-snapshot/1',
    machine: os.hostname(),
    at: Math.floor(Date.now() / 1000),
    summary: {
      forge: { state, reason, causes, sample, cache },
      forge_queue: { pending: sum((spool) => spool.depth ?? 0), set_aside: sum(setAside), unknown: queues.filter((one) => one.forge_queue.error).length },
      quota: budget.compact(),
    },
    projects: queues,
  };
}

/** @param {string[]} heads @param {unknown[][]} rows */
function table(heads, rows) {
  const all = [heads, ...rows.map((row) => row.map(String))];
  const widths = heads.map((_, i) => Math.max(...all.map((row) => row[i].length)));
  return all.map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i])).join('  ').trimEnd()}\n`).join('');
}

/** @param {Document[]} machines */
function view(machines) {
  const forges = machines.map(({ machine, summary: { forge: one } }) => {
    const served = one.cache?.served ? `${one.cache.served} read(s) served from cache` : '-';
    return [machine, one.state, one.reason, `${one.sample.answered}/${one.sample.total}`, served];
  });
  const queues = machines.flatMap(({ machine, projects }) => projects.map((/** @type {Document} */ { name, forge_queue: spool }) => {
    if (spool.error) return [machine, name, '?', '?', spool.error];
    const aside = Object.entries(spool.setAside ?? {}).map(([status, times]) => `${times} ${status}`).join(', ');
    const why = (spool.problems ?? []).map((/** @type {Document} */ problem) => problem.reason).filter(Boolean).join('; ');
    return [machine, name, spool.depth, aside || '0', why || '-'];
  }));
  const quotas = machines.flatMap(({ machine, summary: { quota } }) => ['graphql', 'core', 'search'].map((name) => {
    const one = quota?.[name];
    if (!one) return [machine, name, 'not read', '-', '-'];
    return [machine, name, `${one.remaining} of ${one.limit}`, one.state, new Date(one.resetAt * 1000).toISOString()];
  }));
  const limited = machines.reduce((n, { summary: { quota } }) => n + (quota?.rateLimited ?? 0), 0);
  return `Forge\n${table(['machine', 'state', 'reason', 'answered', 'cache'], forges)}`
    + `\nUndelivered writes\n${table(['machine', 'project', 'pending', 'set aside', 'why'], queues)}`
    + `\nGitHub quota\n${table(['machine', 'quota', 'left', 'state', 'resets'], quotas)}`
    + `  rate-limited answers this week: ${limited} (target 0)\n`;
}

/** @param {string[]} words */
function main([verb, ...words]) {
  if (verb === 'view' && !words.some((word) => word.startsWith('-'))) {
    const given = words.map((file) => JSON.parse(fs.readFileSync(file, 'utf8')));
    process.stdout.write(view(given.length ? given : [snapshot(known([]))]));
    return 0;
  }
  const projects = words.filter((_, i) => i % 2 === 1);
  if (verb === 'snapshot' && words.length % 2 === 0 && words.every((word, i) => i % 2 === 1 || word === '--project')) {
    process.stdout.write(`${JSON.stringify(snapshot(known(projects)), null, 2)}\n`);
    return 0;
  }
  process.stderr.write('usage: audit.js snapshot [--project PATH]... | view [FILE]...\n');
  return 2;
}

/** @param {string[]} given */
const known = (given) => [...new Set((given.length ? given : [process.cwd(), ...marked()]).map((project) => fs.existsSync(project) ? fs.realpathSync(project) : project))];

try {
  process.exitCode = main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`audit: ${/** @type {Error} */ (error).message}\n`);
  process.exitCode = 1;
}
