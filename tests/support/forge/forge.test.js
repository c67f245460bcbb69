'use strict';
// The real gh, both versions, against a healthy forge.

const assert = require('node:assert/strict');
const path = require('node:path');
const { after, before, beforeEach, describe, test } = require('node:test');
const { VERSIONS, run, startForge } = require('./harness');

let forge;
before(async () => { forge = await startForge(); });
after(() => forge.stop());

const SEED = {
  users: ['hubot'], labels: [{ name: 'bug', color: 'd73a4a' }, 'help wanted'], milestones: ['v1'],
  issues: [
    { number: 1, title: 'Crash on start', body: 'It crashes.', labels: ['bug'], author: 'hubot', created_at: '2026-01-02T03:04:05Z',
      comments: [{ author: 'hubot', body: 'Any news?' }] },
    { number: 2, title: 'Old one', state: 'closed', created_at: '2026-01-03T00:00:00Z' },
    { number: 4, title: 'Slow search', created_at: '2026-01-05T00:00:00Z' },
  ],
  prs: [{ number: 3, title: 'A change', created_at: '2026-01-04T00:00:00Z' }],
};

for (const version of VERSIONS) {
  describe(`gh ${version.name}`, () => {
    /** Runs gh, which must succeed without a word on stderr, and answers stdout. */
    async function gh(...argv) {
      const options = typeof argv.at(-1) === 'object' ? argv.pop() : {};
      const ran = await forge.gh(version, argv, options);
      assert.deepEqual({ code: ran.code, stderr: ran.stderr }, { code: 0, stderr: options.stderr ?? '' }, argv.join(' '));
      return ran.stdout;
    }
    const json = async (...argv) => JSON.parse(await gh(...argv));
    const numbers = (list) => list.map((one) => one.number);

    beforeEach(async () => {
      await forge.control('POST', 'reset');
      await forge.control('POST', 'seed', SEED);
    });

    test('lists issues as text and as JSON, newest first, without pull requests', async () => {
      const date = version.old ? '2026-01-05 00:00:00 +0000 UTC' : '2026-01-05T00:00:00Z';
      assert.equal((await gh('issue', 'list')).split('\n')[0], `4\tOPEN\tSlow search\t\t${date}`);
      assert.deepEqual(await json('issue', 'list', '-s', 'all', '--json', 'number,state'), [
        { number: 4, state: 'OPEN' }, { number: 2, state: 'CLOSED' }, { number: 1, state: 'OPEN' },
      ]);
    });

    test('narrows a list by label, search, author and assignee', async () => {
      assert.deepEqual(numbers(await json('issue', 'list', '--label', 'bug', '--json', 'number')), [1]);
      assert.deepEqual(numbers(await json('issue', 'list', '--search', 'slow in:title', '--json', 'number')), [4]);
      assert.deepEqual(numbers(await json('issue', 'list', '--search', '-label:bug sort:created-asc', '--json', 'number')), [4]);
      assert.deepEqual(numbers(await json('issue', 'list', '--author', 'hubot', '--json', 'number')), [1]);
      assert.deepEqual(numbers(await json('issue', 'list', '--assignee', '@me', '--json', 'number')), []);
    });

    test('views an issue as text, with comments and as JSON', async () => {
      assert.match(await gh('issue', 'view', '1'), /^title:\tCrash on start\nstate:\tOPEN\nauthor:\thubot.*\nlabels:\tbug\n[^]*--\nIt crashes\.\n$/);
      assert.match(await gh('issue', 'view', '1', '--comments'), /^author:\thubot\n[^]*--\nAny news\?\n--\n$/);
      const issue = await json('issue', 'view', '1', '--json', 'title,body,labels,comments,author,createdAt,url');
      assert.equal(issue.createdAt, '2026-01-02T03:04:05Z');
      assert.equal(issue.comments[0].body, 'Any news?');
      assert.equal(issue.labels[0].name, 'bug');
      assert.equal(issue.url, 'https://github.com/acme/widget/issues/1');
    });

    test('creates an issue with labels, a milestone and an assignee', async () => {
      const url = await gh('issue', 'create', '-t', 'New', '-b', 'line 1\r\nline 2\n', '-l', 'bug,help wanted', '-m', 'v1', '-a', '@me');
      assert.equal(url, 'https://github.com/acme/widget/issues/5\n');
      const issue = await forge.issue(5);
      assert.deepEqual(issue.labels.sort(), ['bug', 'help wanted']);
      assert.deepEqual([issue.body, issue.milestone, issue.assignees, issue.author], ['line 1\r\nline 2\n', 'v1', ['monalisa'], 'monalisa']);
    });

    test('comments from the command line, from stdin, and edits its last comment', async () => {
      assert.match(await gh('issue', 'comment', '1', '--body', 'first'), /^https:\/\/github\.com\/acme\/widget\/issues\/1#issuecomment-\d+\n$/);
      await gh('issue', 'comment', '1', '--body-file', '-', { input: 'from stdin\n' });
      await gh('issue', 'comment', '1', '--edit-last', '--body', 'edited');
      assert.deepEqual((await forge.issue(1)).comments.map((one) => one.body), ['Any news?', 'first', 'edited']);
    });

    test('edits title, body, labels, milestone and assignees', async () => {
      await gh('issue', 'edit', '1', '-t', 'T', '-b', 'B', '--add-label', 'help wanted', '--remove-label', 'bug', '-m', 'v1', '--add-assignee', 'hubot');
      const issue = await forge.issue(1);
      assert.deepEqual([issue.title, issue.body, issue.labels, issue.milestone, issue.assignees], ['T', 'B', ['help wanted'], 'v1', ['hubot']]);
      await gh('issue', 'edit', '1', '--remove-assignee', 'hubot');
      assert.deepEqual((await forge.issue(1)).assignees, []);
    });

    test('closes with a comment and a reason, and reopens', async () => {
      const named = version.old ? '#1' : 'acme/widget#1';
      const closed = { stderr: `✓ Closed issue ${named} (Crash on start)\n` };
      assert.equal(await gh('issue', 'close', '1', '-c', 'done', '-r', 'not planned', closed), '');
      let issue = await forge.issue(1);
      assert.deepEqual([issue.state, issue.state_reason, issue.comments.at(-1).body], ['closed', 'not_planned', 'done']);
      await gh('issue', 'close', '1', { stderr: `! Issue ${named} (Crash on start) is already closed\n` });
      await gh('issue', 'reopen', '1', '-c', 'again', { stderr: `✓ Reopened issue ${named} (Crash on start)\n` });
      issue = await forge.issue(1);
      assert.deepEqual([issue.state, issue.state_reason, issue.comments.length], ['open', 'reopened', 3]);
      assert.deepEqual(issue.events.map((one) => one.event), ['labeled', 'closed', 'reopened']);
    });

    test('locks, transfers and deletes', async () => {
      await gh('issue', 'lock', '1', '-r', 'resolved');
      assert.equal((await forge.issue(1)).locked, true);
      await forge.control('POST', 'seed', { repos: ['acme/other'] });
      assert.equal(await gh('issue', 'transfer', '1', 'acme/other'), 'https://github.com/acme/other/issues/1\n');
      assert.equal(await gh('api', 'repos/acme/widget/issues/1', '--jq', '.html_url'), 'https://github.com/acme/other/issues/1\n');
      await gh('issue', 'delete', '4', '--yes');
      assert.equal(await forge.issue(4), undefined);
    });

    test('searches issues and pull requests', async () => {
      const search = (...argv) => json('search', ...argv, '--repo', 'acme/widget', '--json', 'number');
      assert.deepEqual(numbers(await search('issues', 'crashes')), [1]);
      assert.deepEqual(numbers(await search('issues', 'Slow search', '--state', 'open')), [4]);
      assert.deepEqual(numbers(await search('issues', '--label', 'help wanted')), []);
      assert.deepEqual(numbers(await search('issues', '--sort', 'created', '--order', 'asc')), [1, 2, 4]);
      assert.deepEqual(numbers(await search('prs')), [3]);
    });

    test('lists and creates labels', async () => {
      assert.equal(await gh('label', 'list'), 'bug\t\t#d73a4a\nhelp wanted\t\t#ededed\n');
      await gh('label', 'create', 'urgent', '-c', 'ff0000', '-d', 'now');
      const twice = await forge.gh(version, ['label', 'create', 'urgent']);
      assert.deepEqual([twice.code, twice.stderr.split(';')[0]], [1, 'label with name "urgent" already exists']);
    });

    test('lists and views pull requests and the repository', async () => {
      assert.match(await gh('pr', 'list'), /^3\tA change\tfeature\tOPEN\t/);
      assert.equal((await json('pr', 'view', '3', '--json', 'number,title')).title, 'A change');
      assert.equal((await json('repo', 'view', 'acme/widget', '--json', 'nameWithOwner')).nameWithOwner, 'acme/widget');
      assert.match(await gh('issue', 'comment', '3', '-b', 'on a PR'), /\/pull\/3#issuecomment-/);
    });

    test('answers gh api: REST, GraphQL, quota, and status of the login', async () => {
      assert.deepEqual(await json('api', 'repos/acme/widget/issues', '--jq', '[.[] | {number, pr: (.pull_request != null)}]'), [
        { number: 4, pr: false }, { number: 3, pr: true }, { number: 1, pr: false },
      ]);
      assert.equal(await gh('api', 'repos/acme/widget/issues', '-f', 'title=By REST', '--jq', '.number'), '5\n');
      await gh('api', '-X', 'PATCH', 'repos/acme/widget/issues/5', '-f', 'state=closed', '-f', 'state_reason=not_planned', '--silent');
      assert.equal((await forge.issue(5)).state_reason, 'not_planned');
      assert.equal(await gh('api', 'repos/acme/widget/issues/1/timeline', '--jq', '[.[].event] | join(" ")'), 'labeled commented\n');
      const query = 'query($n: Int!) { repository(owner: "acme", name: "widget") { issue(number: $n) { title nosuch } } rateLimit { remaining } }';
      const reply = await json('api', 'graphql', '-f', `query=${query}`, '-F', 'n=1');
      assert.equal(reply.data.repository.issue.title, 'Crash on start');
      const { resources } = await json('api', 'rate_limit');
      assert.equal(resources.graphql.remaining, reply.data.rateLimit.remaining);
      assert.equal(resources.core.used, 4);
      assert.match((await forge.gh(version, ['auth', 'status'])).stdout + (await forge.gh(version, ['auth', 'status'])).stderr, /Logged in to github\.com .*monalisa/);
    });

    test('says what does not exist in GitHub\'s words', async () => {
      const fails = async (argv, stderr) => assert.deepEqual(await forge.gh(version, argv), { code: 1, signal: null, stdout: '', stderr });
      await fails(['issue', 'view', '99'], 'GraphQL: Could not resolve to an issue or pull request with the number of 99. (repository.issue)\n');
      await fails(['issue', 'list', '-R', 'no/such'], "GraphQL: Could not resolve to a Repository with the name 'no/such'. (repository)\n");
    });

    test('pages through 250 issues and 250 comments', async () => {
      await forge.control('POST', 'seed', {
        issues: Array.from({ length: 250 }, (_, index) => ({ number: 1000 + index, title: `Issue ${index}` })),
        comments: Array.from({ length: 250 }, (_, index) => ({ issue: 4, body: `Comment ${index}` })),
      });
      await forge.control('DELETE', 'log');
      assert.equal(new Set(numbers(await json('issue', 'list', '-L', '400', '--json', 'number'))).size, 252);
      assert.equal((await forge.control('GET', 'log?operation=IssueList')).length, 3);
      assert.equal(new Set(numbers(await json('issue', 'list', '-L', '400', '-S', 'Issue in:title', '--json', 'number'))).size, 250);
      const { comments } = await json('issue', 'view', '4', '--json', 'comments');
      assert.deepEqual(comments.map((one) => one.body), Array.from({ length: 250 }, (_, index) => `Comment ${index}`));
      const paged = await gh('api', '--paginate', 'repos/acme/widget/issues/4/comments?per_page=100', '--jq', '.[].id');
      assert.equal(new Set(paged.trim().split('\n')).size, 250);
    });
  });
}

test('ends by itself when its stdin closes, and is driven by its own command line', async () => {
  const own = await startForge({ args: ['--repo', 'o/r'] });
  const main = path.join(__dirname, 'main.js');
  const seeded = await run(process.execPath, [main, 'ctl', own.socket, 'POST', 'seed', '-'], { input: '{"issues":[{"title":"x"}]}' });
  assert.equal(JSON.parse(seeded.stdout).issues[0].url, 'https://github.com/o/r/issues/1');
  const refused = await run(process.execPath, [main, 'ctl', own.socket, 'POST', 'fault', '{"fault":"nosuch"}']);
  assert.equal(refused.code, 1);
  assert.match(refused.stdout, /no fault named 'nosuch'/);
  await own.stop();
  assert.equal((await run(process.execPath, [main, 'ctl', own.socket, 'GET', 'state'])).code, 1);
});
