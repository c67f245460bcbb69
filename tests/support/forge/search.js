'use strict';
// GitHub's issue search as far as gh and the tests speak it: qualifiers, quotes, negation, `( )`, `OR`, free text.

const { fullName } = require('./state');

/** Splits a query into words; quotes keep blanks together, also after `label:`. */
function words(query) {
  return query.match(/-?[\w-]+:(?:"[^"]*"|[^\s()"]+)(?:,(?:"[^"]*"|[^\s(),"]+))*|-?"[^"]*"|[()]|[^\s()]+/g) ?? [];
}

/** A query as a tree: `{all:[…]}`, `{any:[…]}`, `{not:…}`, `{key,value}` or `{text}`. */
function parse(query) {
  const tokens = words(query);
  let next = 0;
  function sequence() {
    const any = [[]];
    while (next < tokens.length && tokens[next] !== ')') {
      const token = tokens[next++];
      if (token === 'OR') any.push([]);
      else if (token === 'AND') continue;
      else if (token === '(') {
        any.at(-1).push(sequence());
        next++;
      } else any.at(-1).push(term(token));
    }
    const branches = any.map((all) => ({ all }));
    return branches.length === 1 ? branches[0] : { any: branches };
  }
  const all = [];
  while (next < tokens.length) {
    all.push(sequence());
    next++;
  }
  return { all };
}

function term(token) {
  if (token.startsWith('-') && token.length > 1) return { not: term(token.slice(1)) };
  const qualifier = /^([\w-]+):(.+)$/s.exec(token);
  if (qualifier && QUALIFIERS.has(qualifier[1].toLowerCase())) {
    return { key: qualifier[1].toLowerCase(), value: qualifier[2] };
  }
  return { text: unquoted(token).toLowerCase() };
}

const unquoted = (text) => text.replace(/^"(.*)"$/s, '$1');
const values = (text) => (text.match(/"[^"]*"|[^,]+/g) ?? []).map((one) => unquoted(one).toLowerCase());

/** Whether `value` satisfies `5`, `>5`, `>=5`, `<5`, `1..5`; dates compare as text, which their form allows. */
function inRange(value, range, as) {
  const [low, high] = range.split('..');
  if (high !== undefined) return (low === '*' || value >= as(low)) && (high === '*' || value <= as(high, true));
  const [, operator, bound] = /^(>=|<=|>|<)?(.*)$/.exec(range);
  if (operator === '>') return value > as(bound, true);
  if (operator === '>=') return value >= as(bound);
  if (operator === '<') return value < as(bound);
  if (operator === '<=') return value <= as(bound, true);
  return value >= as(bound) && value <= as(bound, true);
}
const asNumber = (text) => Number(text);
const asDate = (text, end = false) => (/T/.test(text) ? text.replace(/\+00:00$/, 'Z') : `${text}T${end ? '23:59:59' : '00:00:00'}Z`);

const kindOf = (issue) => (issue.pr ? 'pr' : 'issue');
const logins = (users) => users.map((user) => user.login.toLowerCase());
const mentions = (issue, login) => [issue, ...issue.comments].some((one) => one.body.toLowerCase().includes(`@${login}`));

const is = (issue, value) => ({
  issue: !issue.pr, pr: Boolean(issue.pr), 'pull-request': Boolean(issue.pr), open: issue.state === 'OPEN', closed: issue.state !== 'OPEN',
  merged: issue.state === 'MERGED', locked: issue.locked, unlocked: !issue.locked, public: !issue.repo.isPrivate,
  private: issue.repo.isPrivate, draft: Boolean(issue.pr?.draft), unmerged: Boolean(issue.pr) && issue.state !== 'MERGED',
})[value] ?? false;

/** One qualifier each: whether `issue` has one of `list` (lower-cased, `@me` already replaced). */
const QUALIFIERS = new Map(Object.entries({
  repo: (issue, list) => list.includes(fullName(issue.repo).toLowerCase()),
  org: (issue, list) => list.includes(issue.repo.owner.login.toLowerCase()),
  user: (issue, list) => list.includes(issue.repo.owner.login.toLowerCase()),
  is: (issue, list) => list.some((value) => is(issue, value)),
  type: (issue, list) => list.includes(kindOf(issue)),
  state: (issue, list) => list.some((value) => is(issue, value)),
  label: (issue, list) => issue.labels.some((label) => list.includes(label.name.toLowerCase())),
  author: (issue, list) => list.includes(issue.author.login.toLowerCase()),
  assignee: (issue, list) => logins(issue.assignees).some((login) => list.includes(login)),
  mentions: (issue, list) => list.some((login) => mentions(issue, login)),
  commenter: (issue, list) => issue.comments.some((one) => list.includes(one.author.login.toLowerCase())),
  involves: (issue, list) => list.some((login) => mentions(issue, login)
    || logins([issue.author, ...issue.assignees, ...issue.comments.map((one) => one.author)]).includes(login)),
  milestone: (issue, list) => Boolean(issue.milestone) && list.includes(issue.milestone.title.toLowerCase()),
  no: (issue, list) => list.every((what) => ({
    label: issue.labels.length === 0, assignee: issue.assignees.length === 0, milestone: !issue.milestone,
  })[what] ?? true),
  reason: (issue, list) => list.includes((issue.stateReason ?? '').toLowerCase().replace('_', ' ')),
  archived: (issue, list) => list.includes('false'),
  head: (issue, list) => list.includes(issue.pr?.head.toLowerCase()),
  base: (issue, list) => list.includes(issue.pr?.base.toLowerCase()),
  draft: (issue, list) => list.includes(String(Boolean(issue.pr?.draft))),
  comments: (issue, list) => inRange(issue.comments.length, list[0], asNumber),
  created: (issue, list) => inRange(issue.createdAt, list[0].toUpperCase(), asDate),
  updated: (issue, list) => inRange(issue.updatedAt, list[0].toUpperCase(), asDate),
  closed: (issue, list) => Boolean(issue.closedAt) && inRange(issue.closedAt, list[0].toUpperCase(), asDate),
  in: () => true,
  sort: () => true,
}));

function matches(issue, tree, where, me) {
  if (tree.all) return tree.all.every((one) => matches(issue, one, where, me));
  if (tree.any) return tree.any.some((one) => matches(issue, one, where, me));
  if (tree.not) return !matches(issue, tree.not, where, me);
  if (tree.key) return QUALIFIERS.get(tree.key)(issue, values(tree.value).map((value) => (value === '@me' ? me : value)));
  return texts(issue, where).some((text) => text.toLowerCase().includes(tree.text));
}

function texts(issue, where) {
  return [
    ...(where.includes('title') ? [issue.title] : []),
    ...(where.includes('body') ? [issue.body] : []),
    ...(where.includes('comments') ? issue.comments.map((one) => one.body) : []),
  ];
}

function leaves(tree) {
  return [...(tree.all ?? []), ...(tree.any ?? [])].flatMap(leaves).concat(tree.key ? [tree] : []);
}

/**
 * Issues and pull requests matching `query`, in order. `sort` is created, updated or comments (a `sort:x-asc` in the
 * query wins); without one GitHub ranks by best match, here newest first.
 */
function search(state, query, { sort, order = 'desc' } = {}) {
  const tree = parse(query);
  const said = leaves(tree);
  const where = said.filter((one) => one.key === 'in').flatMap((one) => values(one.value));
  const [by, way] = said.find((one) => one.key === 'sort')?.value.split('-') ?? [];
  const field = { created: 'createdAt', updated: 'updatedAt' }[by ?? sort];
  const value = (issue) => ((by ?? sort) === 'comments' ? issue.comments.length : issue[field ?? 'createdAt']);
  const sign = ((by ? way : order) ?? 'desc') === 'asc' ? 1 : -1;
  const me = state.viewer.login.toLowerCase();
  return [...state.repos.values()].flatMap((repo) => [...repo.issues.values()])
    .filter((issue) => matches(issue, tree, where.length ? where : ['title', 'body', 'comments'], me))
    .sort((a, b) => sign * (compare(value(a), value(b)) || a.number - b.number));
}

const compare = (a, b) => (a < b ? -1 : Number(a > b));

module.exports = { search, compare };
