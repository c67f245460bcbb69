'use strict';
const assert = require('node:assert/strict');
const test = require('node:test');
const { readIssues } = require('../scripts/forge/batch.js');
const { VERSIONS, localForge } = require('./local-forge.js');
const { scene } = require('./scene.js');

/** @param {number} from @param {number} to */
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

const many = range(1, 150).map((n) => `label-${String(n).padStart(3, '0')}`);

/** 95 numbers: issues (one with 150 labels, some closed), pull requests, and five that the forge has nothing for. */
async function seeded(/** @type {Awaited<ReturnType<typeof localForge>>} */ forge) {
  const issues = range(1, 80).filter((n) => n % 10 !== 0).map((n) => ({
    number: n, title: `Issue "${n}" – ü`, body: `Body of ${n}\r\nwith two lines, \\ and {owner}`,
    labels: n === 41 ? many : n % 3 ? ['bug', 'area:forge'] : [],
    ...(n % 7 ? {} : { state: 'closed', closed_at: '2024-05-06T07:08:09Z' }),
  }));
  const prs = range(1, 80).filter((n) => n % 10 === 0).map((n) => ({ number: n, title: `PR ${n}`, body: '', labels: ['bug'] }));
  await forge.control('POST', 'seed', { issues: [...issues, ...prs.map((pr) => ({ ...pr, pr: true })), ...range(86, 95).map((n) => ({ number: n }))] });
  return range(1, 95).reverse();
}

const MISSING = [85, 84, 83, 82, 81];

for (const version of VERSIONS) {
  test(`95 issues in three calls, as gh ${version} itself views them`, async (t) => {
    const forge = await localForge(t, { version });
    const numbers = await seeded(forge);
    await forge.requests();
    const { issues, missing, unread } = readIssues([...numbers, 41, 7], { ...forge.options, fields: ['title', 'state', 'body', 'labels', 'closedAt'] });
    const requests = await forge.requests();
    assert.deepEqual({ missing, unread }, { missing: MISSING, unread: [] });
    assert.deepEqual([...issues.keys()], numbers.filter((n) => !MISSING.includes(n)));
    // Three batches, and one page more for the issue with 150 labels.
    assert.deepEqual(requests.map((r) => r.operation), Array(4).fill('BatchIssues'));
    for (const n of [1, 7, 10, 33, 70, 80, 86]) {
      const viewed = forge.gh(['issue', 'view', String(n), '--json', 'number,title,state,body,labels,closedAt']);
      const { isPullRequest, ...issue } = /** @type {any} */ (issues.get(n));
      assert.deepEqual(issue, JSON.parse(viewed.stdout));
      assert.equal(isPullRequest, n % 10 === 0);
    }
    const labels = issues.get(41)?.labels.map((label) => label.name);
    assert.deepEqual(labels?.sort(), many);
    const viewed = JSON.parse(forge.gh(['issue', 'view', '41', '--json', 'labels']).stdout).labels;
    assert.deepEqual(issues.get(41)?.labels.find((label) => label.id === viewed[0].id), viewed[0]);
  });

  test(`one by one, gh ${version} gives the same`, async (t) => {
    const forge = await localForge(t, { version });
    await seeded(forge);
    const numbers = [41, 10, 81, 7];
    const together = readIssues(numbers, forge.options);
    await forge.requests();
    const options = { ...forge.options, env: { ...forge.env, BOB_FORGE_BATCH: '0' } };
    assert.deepEqual(readIssues(numbers, options), together);
    const views = (await forge.requests()).filter((r) => r.operation === 'IssueByNumber');
    assert.equal(views.length, 4);
  });
}

for (const version of VERSIONS) {
  test(`each kind of fault leaves its numbers unread, and only those (gh ${version})`, async (t) => {
    const forge = await localForge(t, { version });
    const numbers = await seeded(forge);
    const options = { ...forge.options, fields: /** @type {const} */ (['state']) };
    const plain = ['500', '502', '503', '504', '401', '403', '404', '410', '422', '429', 'sso', 'integration', 'primary', 'secondary', 'drop', 'cut'];
    const faults = [
      ...plain.map((fault) => ({ fault })),
      { fault: '502', body: 'html' },
      { fault: '503', body: 'empty' },
      { fault: 'primary', http: true },
      { fault: 'graphql', message: 'Something went wrong while executing your query.' },
      { fault: 'graphql', message: 'Could not resolve to a Repository', type: 'NOT_FOUND', path_in_query: ['repository'] },
      { fault: 'answer', status: 200, body: '<html>sign in</html>', content_type: 'text/html' },
      { fault: 'answer', status: 200, body: { data: null } },
      { fault: 'answer', status: 200, body: { data: { repository: null } } },
    ];
    for (const fault of faults) {
      // The second of three batches.
      await forge.fault({ ...fault, operation: 'BatchIssues', skip: 1, times: 1 });
      const { issues, missing, unread } = readIssues(numbers, options);
      assert.deepEqual(unread, numbers.slice(40, 80), JSON.stringify(fault));
      assert.deepEqual(missing, MISSING, JSON.stringify(fault));
      assert.equal(issues.size, 50);
    }
    await forge.fault({ fault: 'hang' });
    const { issues, unread } = readIssues([1, 2], { ...options, timeout: 700 });
    assert.deepEqual([issues.size, unread], [0, [1, 2]]);
    await forge.fault(null);
  });
}

test('a partly refused batch gives what it has, and asks again for the rest', async (t) => {
  const forge = await localForge(t);
  await seeded(forge);
  const node = { __typename: 'Issue', number: 1, state: 'OPEN' };
  const body = (/** @type {object} */ error) => ({ data: { repository: { i1: node, i2: null } }, errors: [error] });
  const read = () => {
    const { issues, missing, unread } = readIssues([1, 2], { ...forge.options, fields: ['state'] });
    return { read: [...issues.keys()], missing, unread };
  };
  const about = { message: 'm', path: ['repository', 'i2'] };
  await forge.fault({ fault: 'answer', body: body({ ...about, type: 'FORBIDDEN' }) });
  assert.deepEqual(read(), { read: [1], missing: [], unread: [2] });
  await forge.fault({ fault: 'answer', body: body({ ...about, type: 'NOT_FOUND' }) });
  assert.deepEqual(read(), { read: [1], missing: [2], unread: [] });
  await forge.fault({ fault: 'answer', body: body({ message: 'm' }) });
  assert.deepEqual(read(), { read: [], missing: [], unread: [1, 2] });
});

test('an issue whose further labels cannot be read is unread', async (t) => {
  const forge = await localForge(t);
  await seeded(forge);
  await forge.fault({ fault: '502', operation: 'BatchIssues', skip: 1 });
  const { issues, unread } = readIssues([40, 41, 42], forge.options);
  assert.deepEqual([[...issues.keys()], unread], [[40, 42], [41]]);
});

test('the repository is the one gh picks, or the one that is named', async (t) => {
  const forge = await localForge(t);
  await forge.control('POST', 'seed', { repos: ['other/thing'], repo: 'other/thing', issues: [{ number: 5, title: 'theirs' }] });
  await forge.control('POST', 'seed', { repo: 'acme/widget', issues: [{ number: 5, title: 'ours' }] });
  const title = (/** @type {object} */ more) => readIssues([5], { ...forge.options, ...more }).issues.get(5)?.title;
  assert.equal(title({}), 'ours');
  assert.equal(title({ repo: 'other/thing' }), 'theirs');
  assert.equal(title({ repo: 'github.com/other/thing' }), 'theirs');
  assert.equal(title({ env: { ...forge.env, GH_REPO: 'other/thing' } }), 'theirs');
  assert.equal(title({ repo: 'no/where' }), undefined);
  assert.deepEqual(readIssues([5], { ...forge.options, repo: 'no/where' }).unread, [5]);
});

test('what is no issue number is refused before any call', (t) => {
  const { options, calls } = scene(t);
  const bad = [[0], [-1], [1.5], [NaN], ['7'], [null], [2 ** 31], [1, undefined], [1, , 2], 7, '7', undefined, new Set([1])]; // eslint-disable-line no-sparse-arrays
  for (const numbers of bad) {
    assert.throws(() => readIssues(/** @type {any} */ (numbers), options), { code: 'EFORGE_USAGE', name: 'TypeError' });
  }
  assert.throws(() => readIssues([1], { ...options, fields: /** @type {any} */ (['comments']) }), { code: 'EFORGE_USAGE' });
  assert.throws(() => readIssues([1], { ...options, repo: 'widget' }), { code: 'EFORGE_USAGE' });
  assert.deepEqual(calls(), []);
});

test('nothing asked for is no call, and without a gh everything is unread', (t) => {
  const { options, calls } = scene(t);
  assert.deepEqual(readIssues([], options), { issues: new Map(), missing: [], unread: [] });
  assert.deepEqual(calls(), []);
  assert.deepEqual(readIssues([3, 1, 3], { ...options, env: { PATH: '/nowhere' } }).unread, [3, 1]);
  assert.deepEqual(readIssues([3], { ...options, gh: '/nowhere/gh' }).unread, [3]);
});

test('the gh on PATH is used as it is, with what the caller says of itself', (t) => {
  const { options, at } = scene(t, 'echo "$BOB_FORGE_CALLER/$BOB_FORGE_DEADLINE" > "$HOME/seen"; exit 1');
  readIssues([1], { ...options, env: { ...options.env, BOB_FORGE_CALLER: 'sweep' }, timeout: 20_000, now: 1_000 });
  assert.equal(require('node:fs').readFileSync(at('seen'), 'utf8'), 'sweep/1020\n');
});
