#!/usr/bin/env node
'use strict';
// A flight plan: the issues a run works through, and how far it is.
//
//   flightplan.js status PLAN [--json]       every item with its state
//   flightplan.js remaining PLAN [--json]    the items that are still open
//
// PLAN is the number of an issue, or a Markdown file. Its items are its list lines that begin with an issue's
// number, in order: `- [ ] #101 what it is about`, `- [x] #102`, `* #103`, `1. #104`. An issue named twice counts
// once. A tick is only a note: the issue's own state decides.
//
// Exit 0: every item was read. 3: some could not be read, or only from the cache; they are listed and counted as
// such, and nothing is claimed of them. 1: the plan itself could not be read. 2: the command line does not fit.

const fs = require('node:fs');
const { issueStore } = require('../forge/gh.js');
const health = require('../forge/health.js');

const store = issueStore(['title', 'state', 'body', 'labels']);

/** The plan's title and its items' numbers. @param {string} plan */
function planOf(plan) {
  if (!/^#?\d+$/.test(plan)) return { title: plan, live: true, numbers: numbersIn(textOf(plan)) };
  const number = Number(plan.replace('#', ''));
  const { issue, missing, live } = store.one(number);
  if (issue) return { title: `#${number} ${issue.title}`, live, numbers: numbersIn(issue.body) };
  throw new Error(missing ? `there is no issue #${number}` : `the plan #${number} could not be read (${reason()})`);
}

/** @param {string} file */
function textOf(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    const why = code === 'ENOENT' ? 'there is no such file' : message;
    throw new Error(`the plan ${file} cannot be read: ${why}; name the number of an issue, or a Markdown file`);
  }
}

/** @param {string} text */
function numbersIn(text) {
  const lines = text.matchAll(/^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?#(\d+)\b/gm);
  return [...new Set(Array.from(lines, ([, number]) => Number(number)))].filter((number) => number > 0);
}

/** The items as they stand. @param {number[]} numbers */
function itemsOf(numbers) {
  store.ahead(numbers);
  return numbers.map((number) => {
    const { issue, missing, live } = store.one(number);
    const state = issue ? issue.state.toLowerCase() : missing ? 'missing' : 'unread';
    return { number, state, title: issue?.title ?? null, labels: issue?.labels.map((label) => label.name) ?? [], live };
  });
}

/** Why something could not be read, as far as the calls so far tell. */
function reason() {
  const { state, reason: why } = health.status({ probe: false });
  return `the forge is ${state}: ${why}`;
}

/** @param {ReturnType<typeof itemsOf>} items */
function summaryOf(items) {
  const count = (/** @type {string[]} */ ...states) => items.filter((item) => states.includes(item.state)).length;
  return {
    total: items.length, open: count('open'), closed: count('closed', 'merged'), missing: count('missing'), unread: count('unread'),
    cached: items.filter((item) => !item.live && item.state !== 'unread').length,
  };
}

/** @param {ReturnType<typeof itemsOf>[number]} item */
function line({ number, state, title, labels, live }) {
  const named = labels.length ? `  [${labels.join(', ')}]` : '';
  const note = state === 'unread' ? '(could not be read)' : state === 'missing' ? '(no such issue)' : live ? '' : '  (last-known state)';
  return `  #${String(number).padEnd(6)} ${state.padEnd(7)} ${title ?? ''}${named}${note}`.trimEnd();
}

/** @param {string[]} words */
function main(words) {
  const json = words.includes('--json');
  const [verb, plan, ...rest] = words.filter((word) => word !== '--json');
  if (!['status', 'remaining'].includes(verb) || !plan || rest.length) {
    process.stderr.write('usage: flightplan.js status|remaining PLAN [--json]\n');
    return 2;
  }
  const { title, live, numbers } = planOf(plan);
  const all = itemsOf(numbers);
  const summary = summaryOf(all);
  const items = verb === 'status' ? all : all.filter((item) => ['open', 'unread'].includes(item.state));
  const whole = live && summary.unread === 0 && summary.cached === 0;
  if (json) {
    process.stdout.write(`${JSON.stringify({ schema: 'bob-flightplan/1', plan: title, complete: whole, summary, items }, null, 2)}\n`);
    return whole ? 0 : 3;
  }
  const { total, open, closed, missing, unread, cached } = summary;
  const parts = [`${closed} done`, `${open} open`, ...(missing ? [`${missing} missing`] : []), ...(unread ? [`${unread} unread`] : [])];
  process.stdout.write(`Flight plan ${title}\n${items.map((item) => `${line(item)}\n`).join('')}${total} items: ${parts.join(', ')}\n`);
  if (!live) process.stdout.write('the plan itself is from the cache: its last-known state, not live\n');
  if (unread) process.stdout.write(`${unread} could not be read: whether they remain is not established (${reason()})\n`);
  if (cached) process.stdout.write(`${cached} from the cache: their last-known state, not live\n`);
  if (verb === 'remaining' && whole && !open) process.stdout.write('nothing remains: every item was read, none is open\n');
  return whole ? 0 : 3;
}

try {
  process.exitCode = main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`flightplan: ${/** @type {Error} */ (error).message}\n`);
  process.exitCode = 1;
}
