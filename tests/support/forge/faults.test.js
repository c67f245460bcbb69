'use strict';
// What the real gh makes of each fault: exit code, stdout, stderr. The texts are measured; the product's own reading of
// gh's errors rests on them, so they are written out.

const assert = require('node:assert/strict');
const { after, before, beforeEach, describe, test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { VERSIONS, startForge } = require('./harness');

let forge;
before(async () => { forge = await startForge(); });
after(() => forge.stop());

const GRAPHQL = 'https://api.github.com/graphql';
const LIST = ['issue', 'list'];
const COMMENT = ['issue', 'comment', '1', '-b', 'hello'];
const API = ['api', 'repos/acme/widget/issues'];
const SEARCH = ['search', 'issues', 'One'];
const ISSUES = 'https://api.github.com/repos/acme/widget/issues';
const LIMIT = /^API rate limit exceeded for user ID \d+\.$/;

const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** A whole stderr: the texts literally, `…` for anything on its line. */
const whole = (...lines) => new RegExp(`^${lines.map((line) => line.split('…').map(literal).join('.*')).join('\n')}\n$`);

/**
 * One row a fault and command: name, fault, argv, stderr, stdout. The stderr may be a function of the version, since they
 * print some differently. stdout is empty unless said.
 */
const TABLE = [
  // shape A: the client's own GraphQL and REST calls
  ['500 on a list', { fault: '500' }, LIST, whole(`HTTP 500: Internal Server Error (${GRAPHQL})`)],
  ['502 JSON on a list', { fault: '502' }, LIST, whole(`HTTP 502: Server Error (${GRAPHQL})`)],
  ['502 HTML on a list', { fault: '502', body: 'html' }, LIST, whole(`HTTP 502: 502 Bad Gateway (${GRAPHQL})`)],
  ['502 without a body on a list', { fault: '502', body: 'empty' }, LIST, whole(`HTTP 502 (${GRAPHQL})`)],
  ['503 on a list', { fault: '503' }, LIST, whole(`HTTP 503: Service Unavailable (${GRAPHQL})`)],
  ['504 on a list', { fault: '504' }, LIST, whole(`HTTP 504: We couldn't respond to your request in time. … (${GRAPHQL})`)],
  ['401 on a list', { fault: '401' }, LIST, (old) => whole(`HTTP 401: Bad credentials (${GRAPHQL})`,
    `Try authenticating with:  gh auth login${old ? '' : ' -h github.com'}`)],
  ['403 on a list', { fault: '403' }, LIST, whole(`HTTP 403: Must have admin rights to Repository. (${GRAPHQL})`)],
  ['SAML on a list', { fault: 'sso' }, LIST, whole(`HTTP 403: Resource protected by organization SAML enforcement. … (${GRAPHQL})`,
    'Authorize in your web browser:  https://github.com/orgs/acme/sso?authorization_request=A1')],
  ['403 for an integration on a list', { fault: 'integration' }, LIST, whole(`HTTP 403: Resource not accessible by integration (${GRAPHQL})`)],
  ['404 on a list', { fault: '404' }, LIST, whole(`HTTP 404: Not Found (${GRAPHQL})`)],
  ['410 on a list', { fault: '410' }, LIST, whole(`HTTP 410: This issue was deleted (${GRAPHQL})`)],
  ['422 on a list', { fault: '422' }, LIST, whole(`HTTP 422: Validation Failed (${GRAPHQL})`, 'Issue.title is missing')],
  ['429 on a list', { fault: '429' }, LIST, whole(`HTTP 429: Too many requests. Please try again later. (${GRAPHQL})`)],
  ['primary limit on a list', { fault: 'primary' }, LIST, whole('GraphQL: API rate limit exceeded for user ID ….')],
  ['primary limit as 403 on a list', { fault: 'primary', http: true }, LIST, whole(`HTTP 403: API rate limit exceeded for user ID …. … (${GRAPHQL})`)],
  ['secondary limit on a list', { fault: 'secondary' }, LIST, whole(`HTTP 403: You have exceeded a secondary rate limit. … (${GRAPHQL})`)],
  ['GraphQL error on a list', { fault: 'graphql', message: 'no', type: 'FORBIDDEN', path_in_query: ['repository', 'issues'] }, LIST,
    whole('GraphQL: no (repository.issues)')],
  ['a captive portal on a list', { fault: 'answer', body: '<html>', content_type: 'text/html' }, LIST,
    whole("invalid character '<' looking for beginning of value")],
  ['no data on a list', { fault: 'answer', body: {} }, LIST, whole("the 'acme/widget' repository has disabled issues")],
  ['connection dropped on a list', { fault: 'drop' }, LIST, whole(`Post "${GRAPHQL}": EOF`)],
  ['body cut on a list', { fault: 'cut' }, LIST, whole('unexpected EOF')],
  ['500 on a create', { fault: '500', on: 'mutation' }, ['issue', 'create', '-t', 'T', '-b', 'B'], whole(`HTTP 500: Internal Server Error (${GRAPHQL})`)],

  // shape B: mutations other than create
  ['502 JSON on a comment', { fault: '502', on: 'mutation' }, COMMENT,
    whole('non-200 OK status code: 502 Bad Gateway body: "{\\"message\\":\\"Server Error\\",…}"')],
  ['502 HTML on a comment', { fault: '502', on: 'mutation', body: 'html' }, COMMENT,
    whole('non-200 OK status code: 502 Bad Gateway body: "<!DOCTYPE html>\\n…</html>\\n"')],
  ['401 on a comment', { fault: '401', on: 'mutation' }, COMMENT, whole('non-200 OK status code: 401 Unauthorized body: "{\\"message\\":\\"Bad credentials\\",…}"')],
  ['secondary limit on a comment', { fault: 'secondary', on: 'mutation' }, COMMENT,
    whole('non-200 OK status code: 403 Forbidden body: "{\\"message\\":\\"You have exceeded a secondary rate limit. …}"')],
  ['429 on a comment', { fault: '429', on: 'mutation', retry_after_s: 1 }, COMMENT, whole('non-200 OK status code: 429 Too Many Requests body: "…"')],
  ['primary limit on a comment', { fault: 'primary', on: 'mutation' }, COMMENT, (old) => whole(old
    ? 'Message: API rate limit exceeded for user ID …., Locations: []' : 'GraphQL: API rate limit exceeded for user ID ….')],
  ['GraphQL errors on a comment', { fault: 'graphql', on: 'mutation', errors: [{ message: 'a' }, { message: 'b' }] }, COMMENT, (old) => (old
    ? whole('Message: a, Locations: []', 'Message: b, Locations: []') : whole('GraphQL: a, b'))],
  ['lookup failing before a comment', { fault: '503', on: 'read' }, COMMENT, whole(`HTTP 503: Service Unavailable (${GRAPHQL})`)],
  ['connection dropped on a comment', { fault: 'drop', on: 'mutation' }, COMMENT, whole(`Post "${GRAPHQL}": EOF`)],

  // shape C: gh api
  ['502 JSON on gh api', { fault: '502' }, API, whole('gh: Server Error (HTTP 502)'), /^\{"message":"Server Error"/],
  ['502 HTML on gh api', { fault: '502', body: 'html' }, API, whole('gh: HTTP 502'), /^<!DOCTYPE html>/],
  ['401 on gh api', { fault: '401' }, API, (old) => (old ? whole('gh: Bad credentials (HTTP 401)') : /^gh: Bad credentials \(HTTP 401\)\n/), /Bad credentials/],
  ['404 on gh api', { fault: '404' }, API, whole('gh: Not Found (HTTP 404)'), /Not Found/],
  ['422 on gh api', { fault: '422' }, API, whole('gh: Validation Failed (HTTP 422)'), /missing_field/],
  ['SAML on gh api, without the hint', { fault: 'sso' }, API, whole('gh: Resource protected by … (HTTP 403)'), /SAML/],
  ['primary limit on gh api', { fault: 'primary' }, API, whole('gh: API rate limit exceeded for user ID …. … (HTTP 403)'), /rate limit/],
  ['primary limit on gh api graphql', { fault: 'primary' }, ['api', 'graphql', '-f', 'query={viewer{login}}'],
    whole('gh: API rate limit exceeded for user ID ….'), /RATE_LIMITED/],
  ['secondary limit on gh api', { fault: 'secondary', retry_after_s: null }, API, whole('gh: You have exceeded a secondary rate limit. … (HTTP 403)'), /secondary/],
  ['HTML under --jq', { fault: '502', body: 'html' }, [...API, '--jq', '.'], whole("invalid character '<' looking for beginning of value"), /^<!DOCTYPE|^$/],
  ['connection dropped on gh api', { fault: 'drop' }, API, whole(`Get "${ISSUES}": EOF`)],
  ['connection dropped on a REST write', { fault: 'drop', on: 'mutation' }, [...API, '-f', 'title=x'], whole(`Post "${ISSUES}": EOF`)],

  // shape D: search
  ['502 on a search', { fault: '502', path: '/search' }, SEARCH, whole('HTTP 502: Server Error (https://api.github.com/search/issues?…)')],
  ['422 on a search', { fault: '422', path: '/search' }, SEARCH, whole('Invalid search query "…".', '…')],
  ['body cut on a search', { fault: 'cut', path: '/search' }, SEARCH, whole('unexpected EOF')],
];

for (const version of VERSIONS) {
  describe(`gh ${version.name}`, () => {
    const gh = (argv, options) => forge.gh(version, argv, options);
    const comments = async () => (await forge.issue(1)).comments.length;

    beforeEach(async () => {
      await forge.control('POST', 'reset');
      await forge.control('POST', 'seed', { issues: [{ title: 'One' }], labels: ['bug'] });
    });

    for (const [name, fault, argv, stderr, stdout = /^$/] of TABLE) {
      test(name, async () => {
        await forge.control('POST', 'fault', fault);
        const ran = await gh(argv);
        assert.match(ran.stderr, typeof stderr === 'function' ? stderr(version.old) : stderr);
        assert.match(ran.stdout, stdout);
        assert.equal(ran.code, 1);
        const state = await forge.control('GET', 'state');
        assert.deepEqual([state.repos['acme/widget'].issues.length, state.repos['acme/widget'].issues[0].comments.length], [1, 0]);
      });
    }

    test('a write that lands before its connection drops is there once, and gh reports a failure', async () => {
      await forge.control('POST', 'fault', { fault: 'applied-then-drop', on: 'mutation', times: 1 });
      const ran = await gh(COMMENT);
      assert.deepEqual([ran.code, ran.stdout, ran.stderr], [1, '', `Post "${GRAPHQL}": EOF\n`]);
      assert.equal(await comments(), 1);
      await forge.control('POST', 'fault', { fault: 'applied-then-502', on: 'mutation', operation: 'IssueCreate' });
      const created = await gh(['issue', 'create', '-t', 'T', '-b', 'B']);
      assert.deepEqual([created.code, created.stdout, created.stderr], [1, '', `HTTP 502: Server Error (${GRAPHQL})\n`]);
      assert.equal((await forge.issue(2)).title, 'T');
    });

    test('the comment of a close lands although the close fails', async () => {
      await forge.control('POST', 'fault', { fault: '502', operation: 'IssueClose' });
      assert.equal((await gh(['issue', 'close', '1', '-c', 'bye'])).code, 1);
      const issue = await forge.issue(1);
      assert.deepEqual([issue.state, issue.comments.length], ['open', 1]);
    });

    test('a fault skips, hits as often as it says, and is gone', async () => {
      await forge.control('POST', 'fault', { fault: '503', on: 'read', skip: 1, times: 2 });
      const codes = [];
      for (let call = 0; call < 4; call++) codes.push((await gh(LIST)).code);
      assert.deepEqual(codes, [0, 1, 1, 0]);
    });

    test('quotas go down a call at a time, and at 0 refuse when enforced', async () => {
      await forge.control('POST', 'quota', { enforce: true, graphql: { remaining: 1, reset_in_s: 90 }, core: 1 });
      assert.equal((await gh(LIST)).code, 0);
      const limited = await gh(COMMENT);
      assert.equal(limited.code, 1);
      assert.match(limited.stderr.trim().replace('GraphQL: ', ''), LIMIT);
      assert.equal((await gh(API)).code, 0);
      assert.match((await gh(API)).stderr, /^gh: API rate limit exceeded .*\(HTTP 403\)\n$/);
      const { resources } = JSON.parse((await gh(['api', 'rate_limit'])).stdout);
      assert.deepEqual([resources.graphql.remaining, resources.core.remaining], [0, 0]);
      assert.ok(resources.graphql.reset - Date.now() / 1000 > 60);
      assert.equal(await comments(), 0);
    });

    test('headers carry the quota, the scopes, and what a fault adds', async () => {
      const healthy = (await gh(['api', '-i', 'user'])).stdout;
      for (const header of ['X-Ratelimit-Limit: 5000', 'X-Ratelimit-Remaining: 4999', 'X-Ratelimit-Used: 1', 'X-Ratelimit-Resource: core', 'X-Oauth-Scopes: ', 'Date: ']) {
        assert.ok(healthy.includes(header), header);
      }
      await forge.control('POST', 'fault', { fault: 'secondary', retry_after_s: 7, status: 429 });
      assert.match((await gh(['api', '-i', 'user'])).stdout, /^HTTP\/1\.1 429 [^]*Retry-After: 7\r?\n/);
    });

    test('a hang holds gh until it is cleared, and a gh killed meanwhile writes nothing', async () => {
      const { id } = (await forge.control('POST', 'fault', { fault: 'hang', on: 'mutation' }))[0];
      let child;
      const hung = gh(COMMENT, { onSpawn: (one) => { child = one; } });
      await logged((entry) => entry.operation === 'CommentCreate');
      child.kill('SIGTERM');
      assert.equal((await hung).signal, 'SIGTERM');
      const second = gh(COMMENT);
      await logged((entry, all) => entry.operation === 'CommentCreate' && all.filter((one) => one.operation === 'CommentCreate').length === 2);
      assert.equal(await comments(), 0);
      await forge.control('DELETE', `faults?id=${id}`);
      assert.equal((await second).code, 0);
      assert.equal(await comments(), 1);
    });

    test('latency delays the answer', async () => {
      await forge.control('POST', 'fault', { fault: 'latency', ms: 400 });
      const from = Date.now();
      assert.equal((await gh(API)).code, 0);
      assert.ok(Date.now() - from >= 400);
    });

    test('the log tells what was asked, what was wrong and what was applied', async () => {
      await forge.control('POST', 'fault', { fault: 'applied-then-drop', operation: 'CommentCreate' });
      await gh(COMMENT);
      const log = await forge.control('GET', 'log');
      const seen = log.map(({ kind, method, path, operation, fault, status, applied }) => ({ kind, method, path, operation, fault, status, applied }));
      assert.deepEqual(seen, [
        { kind: 'read', method: 'POST', path: '/graphql', operation: 'IssueByNumber', fault: null, status: 200, applied: true },
        { kind: 'mutation', method: 'POST', path: '/graphql', operation: 'CommentCreate', fault: 'applied-then-drop', status: null, applied: true },
      ]);
      assert.equal(log[1].variables.input.body, 'hello');
    });
  });
}

/** Waits until an entry of the log satisfies `is`. */
async function logged(is) {
  for (;;) {
    const log = await forge.control('GET', 'log');
    if (log.some((entry) => is(entry, log))) return;
    await sleep(10);
  }
}
