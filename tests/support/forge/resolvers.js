'use strict';
// The forge's memory as GraphQL sees it: one view per kind of node, connections with real cursors, the query root.

const { ForgeError, stamp, fullName, repoUrl, issueUrl, commentUrl } = require('./state');
const { search, compare } = require('./search');

const PAGE_MAX = 100;
const SEARCH_MAX = 1000;
const cursorOf = (item) => Buffer.from(`cursor:${item.id}`).toString('base64');

/** A connection over `items` (each with an `id`), paged as GitHub does: a cursor names an item, at most 100 a page. */
function connection(items, view, args = {}, name = 'nodes') {
  for (const bound of ['first', 'last']) {
    if (args[bound] > PAGE_MAX) {
      const message = `Requesting ${args[bound]} records on the \`${name}\` connection exceeds the \`${bound}\` limit of ${PAGE_MAX} records.`;
      throw new ForgeError(message, { type: 'EXCESSIVE_PAGINATION' });
    }
  }
  const from = args.after ? place(items, args.after) + 1 : 0;
  const to = args.before ? place(items, args.before) : items.length;
  let page = items.slice(from, to);
  if (args.first != null) page = page.slice(0, args.first);
  if (args.last != null) page = args.last === 0 ? [] : page.slice(-args.last);
  const start = page.length ? items.indexOf(page[0]) : from;
  return {
    totalCount: items.length,
    nodes: () => page.map(view),
    edges: () => page.map((item) => ({ node: view(item), cursor: cursorOf(item) })),
    pageInfo: {
      hasNextPage: start + page.length < items.length, hasPreviousPage: start > 0,
      startCursor: page.length ? cursorOf(page[0]) : null, endCursor: page.length ? cursorOf(page.at(-1)) : null,
    },
  };
}

function place(items, cursor) {
  const index = items.findIndex((item) => cursorOf(item) === cursor);
  if (index < 0) throw new ForgeError(`\`${cursor}\` does not appear to be a valid cursor.`, { type: 'INVALID_CURSOR_ARGUMENTS' });
  return index;
}

function views(state) {
  const user = (one) => ({
    __typename: 'User', id: one.id, databaseId: one.databaseId, login: one.login, name: one.name, isViewer: one === state.viewer,
    url: `https://github.com/${one.login}`, resourcePath: `/${one.login}`, avatarUrl: `https://avatars.githubusercontent.com/${one.login}`,
    repositories: (args) => connection(reposOf(one), repo, args, 'repositories'),
  });
  const reposOf = (owner) => [...state.repos.values()].filter((one) => one.owner === owner);

  const label = (one) => ({
    __typename: 'Label', id: one.id, name: one.name, color: one.color, description: one.description, createdAt: one.createdAt, isDefault: false,
    url: `${repoUrl(one.repo)}/labels/${encodeURIComponent(one.name)}`, repository: () => repo(one.repo),
  });

  const milestone = (one) => ({
    __typename: 'Milestone', id: one.id, number: one.number, title: one.title, description: one.description, state: one.state,
    dueOn: one.dueOn, createdAt: one.createdAt, url: `${repoUrl(one.repo)}/milestone/${one.number}`,
  });

  const comment = (one) => ({
    __typename: 'IssueComment', id: one.id, databaseId: one.databaseId, fullDatabaseId: String(one.databaseId), body: one.body, bodyText: one.body,
    author: user(one.author), authorAssociation: association(one.author, one.issue.repo), viewerDidAuthor: one.author === state.viewer,
    viewerCanUpdate: one.author === state.viewer, viewerCanDelete: one.author === state.viewer, createdAt: one.createdAt,
    publishedAt: one.createdAt, updatedAt: one.updatedAt, includesCreatedEdit: one.updatedAt !== one.createdAt, url: commentUrl(one),
    isMinimized: false, minimizedReason: null, reactionGroups: [], issue: () => issue(one.issue), repository: () => repo(one.issue.repo),
  });

  const issue = (one) => ({
    __typename: one.pr ? 'PullRequest' : 'Issue', id: one.id, databaseId: one.databaseId, fullDatabaseId: String(one.databaseId),
    number: one.number, title: one.title, body: one.body, bodyText: one.body, state: one.state, stateReason: one.stateReason,
    closed: one.state !== 'OPEN', createdAt: one.createdAt, updatedAt: one.updatedAt, closedAt: one.closedAt, url: issueUrl(one),
    resourcePath: issueUrl(one).replace('https://github.com', ''), locked: one.locked, activeLockReason: one.lockReason, isPinned: one.pinned,
    author: user(one.author), authorAssociation: association(one.author, one.repo), viewerDidAuthor: one.author === state.viewer,
    labels: (args) => connection(one.labels, label, args, 'labels'),
    assignees: (args) => connection(one.assignees, user, args, 'assignees'),
    assignedActors: (args) => connection(one.assignees, user, args, 'assignedActors'),
    participants: (args) => connection(people(one), user, args, 'participants'),
    comments: (args) => connection(one.comments, comment, args, 'comments'),
    milestone: one.milestone && milestone(one.milestone), reactionGroups: [], repository: () => repo(one.repo),
    ...(one.pr ? pull(one) : {}),
  });
  const people = (one) => [...new Set([one.author, ...one.comments.map((each) => each.author)])];

  const pull = (one) => ({
    headRefName: one.pr.head, baseRefName: one.pr.base, isDraft: one.pr.draft, merged: one.state === 'MERGED', isCrossRepository: false,
    mergedAt: one.state === 'MERGED' ? one.closedAt : null, mergedBy: one.state === 'MERGED' ? user(state.viewer) : null,
    headRepository: () => repo(one.repo), headRepositoryOwner: user(one.repo.owner), mergeable: 'MERGEABLE', mergeStateStatus: 'CLEAN',
    reviewDecision: null,
  });

  const repo = (one) => ({
    __typename: 'Repository', id: one.id, databaseId: one.databaseId, name: one.name, nameWithOwner: fullName(one), owner: user(one.owner),
    url: repoUrl(one), sshUrl: `git@github.com:${fullName(one)}.git`, description: one.description, isPrivate: one.isPrivate,
    visibility: one.isPrivate ? 'PRIVATE' : 'PUBLIC', hasIssuesEnabled: one.hasIssues, hasWikiEnabled: true, isArchived: false, isFork: false,
    createdAt: one.createdAt, updatedAt: one.createdAt, pushedAt: one.createdAt, viewerPermission: 'ADMIN', viewerCanAdminister: true,
    mergeCommitAllowed: true, rebaseMergeAllowed: true, squashMergeAllowed: true, parent: null,
    defaultBranchRef: { __typename: 'Ref', id: `REF_${one.id}`, name: one.defaultBranch, prefix: 'refs/heads/' },
    label: ({ name }) => { const found = state.label(one, name); return found ? label(found) : null; },
    labels: (args) => connection(wantedLabels(one, args), label, args, 'labels'),
    milestones: (args) => connection(one.milestones.filter((each) => !args.states || args.states.includes(each.state)), milestone, args, 'milestones'),
    assignableUsers: (args) => connection(named([...state.users.values()], args.query), user, args, 'assignableUsers'),
    suggestedActors: (args) => connection(named([...state.users.values()], args.query), user, args, 'suggestedActors'),
    issue: ({ number }) => issue(numbered(one, number, (each) => !each.pr, 'an Issue')),
    pullRequest: ({ number }) => issue(numbered(one, number, (each) => each.pr, 'a PullRequest')),
    issueOrPullRequest: ({ number }) => issue(numbered(one, number, () => true, 'an issue or pull request')),
    issues: (args) => connection(wantedIssues(one, args), issue, args, 'issues'),
    pullRequests: (args) => connection(wantedPulls(one, args), issue, args, 'pullRequests'),
  });

  const association = (author, repository) => (author === repository.owner || author === state.viewer ? 'OWNER' : 'NONE');
  return { user, label, milestone, comment, issue, pr: issue, repo };
}

function numbered(repo, number, fits, what) {
  const issue = repo.issues.get(number) ?? repo.moved.get(number);
  if (issue && fits(issue)) return issue;
  throw new ForgeError(`Could not resolve to ${what} with the number of ${number}.`, { type: 'NOT_FOUND' });
}

const named = (users, query) => users.filter((one) => !query || one.login.toLowerCase().includes(query.toLowerCase()));
const SORT_FIELDS = { CREATED_AT: 'createdAt', UPDATED_AT: 'updatedAt', NAME: 'name' };

function sorted(items, orderBy, fallback) {
  const { field, direction } = orderBy ?? fallback;
  const value = (item) => (field === 'COMMENTS' ? item.comments.length : item[SORT_FIELDS[field]]);
  const sign = direction === 'DESC' ? -1 : 1;
  return items.sort((a, b) => sign * (compare(value(a), value(b)) || compare(a.number ?? a.databaseId, b.number ?? b.databaseId)));
}

function wantedLabels(repo, { query, orderBy }) {
  const text = (query ?? '').toLowerCase();
  const found = repo.labels.filter((one) => `${one.name} ${one.description}`.toLowerCase().includes(text));
  return sorted(found, orderBy, { field: 'CREATED_AT', direction: 'ASC' });
}

function wantedIssues(repo, { states, labels, filterBy, orderBy }) {
  const wanted = { ...filterBy };
  const is = (login, user) => !login || user.login.toLowerCase() === login.toLowerCase();
  const has = (names, one) => !names || one.labels.some((each) => names.some((name) => name.toLowerCase() === each.name.toLowerCase()));
  const found = [...repo.issues.values()].filter((one) => !one.pr
    && (!states || states.includes(one.state)) && (!wanted.states || wanted.states.includes(one.state))
    && has(labels, one) && has(wanted.labels, one) && is(wanted.createdBy, one.author)
    && (!wanted.assignee || wanted.assignee === '*' || one.assignees.some((user) => is(wanted.assignee, user)))
    && (!wanted.mentioned || one.body.toLowerCase().includes(`@${wanted.mentioned.toLowerCase()}`))
    && (!wanted.since || one.updatedAt >= wanted.since)
    && (!wanted.milestone || one.milestone?.title === wanted.milestone)
    && (!wanted.milestoneNumber || String(one.milestone?.number) === wanted.milestoneNumber));
  return sorted(found, orderBy, { field: 'CREATED_AT', direction: 'ASC' });
}

function wantedPulls(repo, { states, headRefName, baseRefName, orderBy }) {
  const found = [...repo.issues.values()].filter((one) => one.pr && (!states || states.includes(one.state))
    && (!headRefName || one.pr.head === headRefName) && (!baseRefName || one.pr.base === baseRefName));
  return sorted(found, orderBy, { field: 'CREATED_AT', direction: 'ASC' });
}

/** The query root. */
function root(state) {
  const view = views(state);
  const unresolved = (what) => { throw new ForgeError(`Could not resolve to ${what}`, { type: 'NOT_FOUND' }); };
  return {
    viewer: () => view.user(state.viewer),
    rateLimit: (_args, { quota }) => {
      const { limit, used, remaining, reset } = quota.row('graphql');
      return { limit, used, remaining, resetAt: stamp(reset * 1000), cost: 1, nodeCount: 0 };
    },
    repository: ({ owner, name }) => {
      const repo = state.repo(`${owner}/${name}`);
      return repo ? view.repo(repo) : unresolved(`a Repository with the name '${owner}/${name}'.`);
    },
    user: ({ login }) => {
      const user = state.users.get(login.toLowerCase());
      return user ? view.user(user) : unresolved(`a User with the login of '${login}'.`);
    },
    repositoryOwner: ({ login }) => {
      const user = state.users.get(login.toLowerCase());
      return user ? view.user(user) : null;
    },
    organization: ({ login }) => unresolved(`an Organization with the login of '${login}'.`),
    node: ({ id }) => {
      const node = state.byId(id);
      return view[node.kind](node);
    },
    nodes: ({ ids }) => ids.map((id) => view[state.byId(id).kind](state.byId(id))),
    // gh pages a search with `last` and `after` and counts on getting the first ones, as GitHub's search answers it
    search: ({ query, type, first, last, after, before }) => {
      const page = before ? { last, before } : { first: first ?? last, after };
      const found = /^ISSUE/.test(type) ? search(state, query).slice(0, SEARCH_MAX) : [];
      return { ...connection(found, view.issue, page, 'search'), issueCount: found.length };
    },
  };
}

module.exports = { root, views };
