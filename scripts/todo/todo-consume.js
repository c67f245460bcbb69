#!/usr/bin/env node
'use strict';
// Which todos have been overtaken by the work they were waiting for?
//
//   todo-consume.js stale [--dry-run] [--limit N]
//
// A todo is an open issue with the label `todo`. Its links are the issues and pull requests its body names (`#12`).
// It is stale when none of its links is open and one of them has taken it over: closed after the todo was filed, and
// naming the todo (`#<todo>`) in its body or in a comment. A stale todo gets the label `stale`, unless `--dry-run`.
//
// The links are read together. A link's comments are read only when the verdict turns on them: no link is open, this
// one closed after the todo was filed, and no body names the todo.
//
// Nothing is claimed that was not read, live: a todo whose verdict turns on something unread, or on last-known state,
// is UNCHECKED. Exit 0: every todo was checked. 3: some were not. 1: the todos could not be listed. 2: usage.

const { gh, issueStore } = require('../forge/gh.js');
const health = require('../forge/health.js');

const store = issueStore(['state', 'closedAt', 'body']);

/** @typedef {{number: number, title: string, body: string, createdAt: string, labels: {name: string}[]}} Todo */

/** @param {number} limit @returns {Promise<{todos: Todo[] | null, live: boolean}>} */
async function list(limit) {
  const fields = 'number,title,body,createdAt,labels';
  const { code, stdout, live } = await gh(['issue', 'list', '--label', 'todo', '--state', 'open', '--limit', String(limit), '--json', fields]);
  return { todos: code === 0 ? JSON.parse(stdout) : null, live };
}

/** @param {Todo} todo */
function linksOf({ number, body }) {
  const named = Array.from(body.matchAll(/(?<![\w/])#(\d{1,10})\b/g), ([, digits]) => Number(digits));
  return [...new Set(named)].filter((link) => link > 0 && link < 2 ** 31 && link !== number);
}

/** @param {string} text @param {number} number */
const names = (text, number) => new RegExp(`(?<![\\w/])#${number}\\b`).test(text);

/** The comments of an issue as one text, or null when they were not read live. @param {number} number */
async function commentsOf(number) {
  const { code, stdout, live } = await gh(['issue', 'view', String(number), '--json', 'comments']);
  if (code !== 0 || !live) return null;
  return JSON.parse(stdout).comments.map((/** @type {{body: string}} */ comment) => comment.body).join('\n');
}

/**
 * @param {Todo} todo
 * @returns {Promise<{verdict: 'alive' | 'unlinked' | 'kept' | 'stale' | 'unchecked', by?: number[]}>}
 */
async function judge(todo) {
  const links = linksOf(todo).map((number) => ({ number, ...store.one(number) }));
  if (!links.length) return { verdict: 'unlinked' };
  // One live open link decides, whatever the others are.
  if (links.some(({ issue, live }) => live && issue?.state === 'OPEN')) return { verdict: 'alive' };
  const unread = links.filter(({ live }) => !live).map(({ number }) => number);
  if (unread.length) return { verdict: 'unchecked', by: unread };
  const after = links.filter(({ issue }) => issue?.closedAt && issue.closedAt > todo.createdAt);
  const taken = after.find(({ issue }) => issue && names(issue.body, todo.number));
  if (taken) return { verdict: 'stale', by: [taken.number] };
  const silent = [];
  for (const { number } of after) {
    const comments = await commentsOf(number);
    if (comments === null) silent.push(number);
    else if (names(comments, todo.number)) return { verdict: 'stale', by: [number] };
  }
  return silent.length ? { verdict: 'unchecked', by: silent } : { verdict: 'kept' };
}

/** @param {Todo} todo */
async function label(todo) {
  if (todo.labels.some(({ name }) => name === 'stale')) return 'already labelled';
  const { code, live, stderr } = await gh(['issue', 'edit', String(todo.number), '--add-label', 'stale']);
  if (code !== 0) return `NOT labelled: ${stderr.split('\n').find((line) => line && !line.startsWith('[forge-')) ?? `gh exited with ${code}`}`;
  return live ? 'labelled' : 'label queued, not delivered yet';
}

/** What may be said in the end. @param {Record<string, number>} counts @param {number} total */
function closing({ stale = 0, unchecked = 0, alive = 0, unlinked = 0, kept = 0 }, total) {
  const plural = (/** @type {number} */ n) => `${n} todo${n === 1 ? '' : 's'}`;
  const found = stale ? `${plural(stale)} stale` : 'no stale todos';
  if (unchecked) return `${found} among the ${total - unchecked} checked — ${plural(unchecked)} could not be fully checked`;
  if (stale) return `${found} of ${total} open`;
  if (total === alive) return 'no stale todos — every open todo has at least one open linked issue';
  return `no stale todos — ${alive} with an open link, ${kept} not taken over by a closed one, ${unlinked} without links`;
}

/** @param {string[]} words */
async function main(words) {
  const at = words.indexOf('--limit');
  const limit = at < 0 ? 1000 : Number(words[at + 1]);
  const rest = words.filter((word, i) => word !== '--dry-run' && (at < 0 || (i !== at && i !== at + 1)));
  if (rest.join(' ') !== 'stale' || !Number.isInteger(limit) || limit < 1) {
    process.stderr.write('usage: todo-consume.js stale [--dry-run] [--limit N]\n');
    return 2;
  }
  const { todos, live } = await list(limit);
  if (!todos || !live) {
    const { state, reason } = health.status({ probe: false });
    process.stdout.write(`could not check: the list of todos ${todos ? 'is last-known state, not live' : 'could not be read'} — the forge is ${state} (${reason})\n`);
    return todos ? 3 : 1;
  }
  store.ahead([...new Set(todos.flatMap(linksOf))]);
  /** @type {Record<string, number>} */
  const counts = {};
  for (const todo of todos) {
    const { verdict, by = [] } = await judge(todo);
    counts[verdict] = (counts[verdict] ?? 0) + 1;
    const links = by.map((number) => `#${number}`).join(', ');
    if (verdict === 'unchecked') process.stdout.write(`UNCHECKED #${todo.number} ${todo.title} — could not read ${links}\n`);
    if (verdict === 'stale') {
      const done = words.includes('--dry-run') ? '' : ` (${await label(todo)})`;
      process.stdout.write(`STALE #${todo.number} ${todo.title} — taken over by ${links}${done}\n`);
    }
  }
  process.stdout.write(`${closing(counts, todos.length)}\n`);
  if (todos.length === limit) process.stdout.write(`only the first ${limit} todos were looked at (--limit)\n`);
  return counts.unchecked || todos.length === limit ? 3 : 0;
}

main(process.argv.slice(2)).then(
  (code) => { process.exitCode = code; },
  (error) => {
    process.stderr.write(`todo-consume: ${error.message}\n`);
    process.exitCode = 1;
  },
);
