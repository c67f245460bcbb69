#!/usr/bin/env node
'use strict';
// What a brief is made of, each part with whether it was read.
//
//   collect.js [--repo OWNER/NAME]... [--timeout MS] [--json]
//
// One REST request a repository (its open issues and pull requests), one GraphQL query (who asks), two searches (assigned
// issues, requested reviews). The repositories are those of --repo, else the lines of $BOB_HOME/repos, else the
// checkout's own. Every call goes through patient.js: it is named `brief`, its limit (20 s) makes room for the shim's
// wait, and one that met a rate limit is run once more.
//
// A part as long as one request gives (100) says `at least`. A part that could not be read is a gap with its reason: no count is given for it. Exit 0: everything was read; 3: gaps.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { gh } = require('../forge/gh.js');
const patient = require('../forge/patient.js');

/** What one request gives at most; a part that is as long may have more. */
const PAGE = 100;
const SEARCH = 'number,title,url,repository';

/** @param {string[]} words */
function optionsOf(words) {
  const options = { json: false, timeout: 20_000, repos: /** @type {string[]} */ ([]) };
  for (let i = 0; i < words.length; i += 1) {
    if (words[i] === '--json') options.json = true;
    else if (words[i] === '--repo' && words[i + 1]) options.repos.push(words[i += 1]);
    else if (words[i] === '--timeout' && Number(words[i + 1]) > 0) options.timeout = Number(words[i += 1]);
    else return null;
  }
  return options;
}

/** What gh takes for the checkout's own repository. */
const HERE = '{owner}/{repo}';

/** The registered repositories, or the checkout's own. */
function registered() {
  const file = path.join(process.env.BOB_HOME || path.join(os.homedir(), '.claude'), 'repos');
  const lines = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n').map((line) => line.trim()) : [];
  const repos = lines.filter((line) => line && !line.startsWith('#'));
  return repos.length ? repos : [HERE];
}

/**
 * One part, read or a gap.
 * @param {string} name
 * @param {string[]} args
 * @param {number} timeout
 * @param {(answer: any) => unknown} shape
 */
async function part(name, args, timeout, shape) {
  const run = (/** @type {string[]} */ words, /** @type {any} */ options) => gh(words, options);
  const { code, stdout, outcome, live, attempts } = await patient.run(run, args, { timeout, caller: 'brief' });
  const gap = (/** @type {string} */ why) => ({ name, read: false, gap: why, attempts });
  if (code !== 0) return gap(outcome);
  if (!live) return gap('last-known state, not live');
  try {
    const items = /** @type {unknown[]} */ (shape(JSON.parse(stdout)));
    return { name, read: true, more: items.length >= PAGE, items, attempts };
  } catch {
    return gap('an answer that is none');
  }
}

/** @param {any[]} list */
const issues = (list) => list.map(({ number, title, html_url: url, pull_request: pull, labels }) => (
  { number, title, url, isPullRequest: pull !== undefined, labels: labels.map((/** @type {any} */ label) => label.name) }));

/** @param {string[]} words */
async function main(words) {
  const options = optionsOf(words);
  if (!options) {
    process.stderr.write('usage: collect.js [--repo OWNER/NAME]... [--timeout MS] [--json]\n');
    return 2;
  }
  const { timeout, json } = options;
  const parts = [];
  for (const repo of options.repos.length ? options.repos : registered()) {
    parts.push(await part(`open in ${repo === HERE ? 'this repository' : repo}`, ['api', `repos/${repo}/issues?state=open&per_page=${PAGE}`], timeout, issues));
  }
  parts.push(await part('asked by', ['api', 'graphql', '-f', 'query=query{viewer{login}}'], timeout, (answer) => [answer.data.viewer.login]));
  parts.push(await part('assigned', ['search', 'issues', '--assignee', '@me', '--state', 'open', '--limit', `${PAGE}`, '--json', SEARCH], timeout, (list) => list));
  parts.push(await part('reviews requested', ['search', 'prs', '--review-requested', '@me', '--state', 'open', '--limit', `${PAGE}`, '--json', SEARCH], timeout, (list) => list));
  const gaps = parts.filter(({ read }) => !read);
  if (json) process.stdout.write(`${JSON.stringify({ schema: 'bob-brief/1', complete: !gaps.length, parts }, null, 2)}\n`);
  else for (const one of parts) process.stdout.write(`${text(one)}\n`);
  if (!json && gaps.length) process.stdout.write(`${gaps.length} of ${parts.length} parts could not be read: this brief is not complete\n`);
  return gaps.length ? 3 : 0;
}

/** @param {any} part */
function text({ name, read, more, items, gap }) {
  if (!read) return `${name}: could not be read (${gap})`;
  const shown = items.slice(0, 5).map((/** @type {any} */ item) => (item.number ? `#${item.number} ${item.title}` : item)).join(', ');
  return `${name}: ${more ? 'at least ' : ''}${items.length}${shown ? ` — ${shown}` : ''}${items.length > 5 ? ', …' : ''}`;
}

main(process.argv.slice(2)).then(
  (code) => { process.exitCode = code; },
  (error) => {
    process.stderr.write(`collect: ${error.message}\n`);
    process.exitCode = 1;
  },
);
