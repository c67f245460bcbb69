'use strict';
// GitHub's REST paths that gh and `gh api` use for issues, labels and search.

const { ForgeError, fullName, repoUrl, issueUrl, commentUrl } = require('./state');
const { search, compare } = require('./search');

const API = 'https://api.github.com';
const notFound = () => new ForgeError('Not Found', { type: 'NOT_FOUND', status: 404 });
const json = (body, status = 200, headers = {}) => ({ status, body, headers });

/** `[method, path pattern, handler]`; the handler gets the pattern's groups in `parts`. */
const ROUTES = [
  ['GET', /^\/$/, () => json({ current_user_url: `${API}/user`, rate_limit_url: `${API}/rate_limit` })],
  ['GET', /^\/meta$/, () => json({ verifiable_password_authentication: false })],
  ['GET', /^\/user$/, ({ state }) => json({ ...userJson(state.viewer), name: state.viewer.name })],
  ['GET', /^\/users\/([^/]+)$/, ({ state, parts: [login] }) => {
    const user = state.users.get(login.toLowerCase());
    if (!user) throw notFound();
    return json(userJson(user));
  }],
  ['GET', /^\/rate_limit$/, ({ quota }) => json({ resources: quota.rows(), rate: quota.rows().core })],
  ['GET', /^\/search\/issues$/, searchIssues],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)$/, ({ repo }) => json(repoJson(repo))],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/issues$/, listIssues],
  ['POST', /^\/repos\/([^/]+)\/([^/]+)\/issues$/, createIssue],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/issues\/comments\/(\d+)$/, ({ comment }) => json(commentJson(comment))],
  ['PATCH', /^\/repos\/([^/]+)\/([^/]+)\/issues\/comments\/(\d+)$/, ({ state, comment, body }) => {
    state.editComment(comment, body.body);
    return json(commentJson(comment));
  }],
  ['DELETE', /^\/repos\/([^/]+)\/([^/]+)\/issues\/comments\/(\d+)$/, ({ state, comment }) => {
    state.deleteComment(comment);
    return json(null, 204);
  }],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/issues\/(\d+)$/, ({ issue }) => json(issueJson(issue))],
  ['PATCH', /^\/repos\/([^/]+)\/([^/]+)\/issues\/(\d+)$/, updateIssue],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/issues\/(\d+)\/comments$/, (call) => {
    const since = call.query.get('since');
    return paged(call, call.issue.comments.filter((one) => !since || one.updatedAt >= since), commentJson);
  }],
  ['POST', /^\/repos\/([^/]+)\/([^/]+)\/issues\/(\d+)\/comments$/, ({ state, issue, body }) => json(commentJson(state.addComment(issue, body)), 201)],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/issues\/(\d+)\/labels$/, (call) => paged(call, call.issue.labels, labelJson)],
  ['POST', /^\/repos\/([^/]+)\/([^/]+)\/issues\/(\d+)\/labels$/, ({ state, repo, issue, body }) => {
    state.addLabels(issue, (body.labels ?? body).map((name) => state.ensureLabel(repo, name)));
    return json(issue.labels.map(labelJson));
  }],
  ['DELETE', /^\/repos\/([^/]+)\/([^/]+)\/issues\/(\d+)\/labels\/([^/]+)$/, ({ state, repo, issue, parts }) => {
    const label = state.label(repo, decodeURIComponent(parts[3]));
    if (!label || !issue.labels.includes(label)) throw new ForgeError('Label does not exist', { status: 404 });
    state.removeLabels(issue, [label]);
    return json(issue.labels.map(labelJson));
  }],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/issues\/(\d+)\/events$/, (call) => paged(call, call.issue.events, eventJson)],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/issues\/(\d+)\/timeline$/, (call) => paged(call, timeline(call.issue), (one) => one)],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/labels$/, (call) => paged(call, call.repo.labels, labelJson)],
  ['POST', /^\/repos\/([^/]+)\/([^/]+)\/labels$/, ({ state, repo, body }) => json(labelJson(state.createLabel(repo, body)), 201)],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/labels\/([^/]+)$/, ({ label }) => json(labelJson(label()))],
  ['PATCH', /^\/repos\/([^/]+)\/([^/]+)\/labels\/([^/]+)$/, ({ label, body }) => {
    const { new_name: name, color, description } = body;
    return json(labelJson(Object.assign(label(), defined({ name, color, description }))));
  }],
  ['DELETE', /^\/repos\/([^/]+)\/([^/]+)\/labels\/([^/]+)$/, ({ state, repo, label }) => {
    state.deleteLabel(repo, label());
    return json(null, 204);
  }],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/milestones$/, (call) => paged(call, call.repo.milestones, milestoneJson)],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/actions\/runs$/, () => json({ total_count: 0, workflow_runs: [] })],
  ['GET', /^\/repos\/([^/]+)\/([^/]+)\/actions\/workflows$/, () => json({ total_count: 0, workflows: [] })],
];

/** Answers one REST request as `{status, body, headers}`; a refusal is a ForgeError. */
function answer(state, quota, { method, path, query, body }) {
  for (const [verb, pattern, handle] of ROUTES) {
    const match = verb === method && pattern.exec(path);
    if (!match) continue;
    const call = callOf(state, quota, { query, body: body ?? {}, path, parts: match.slice(1) });
    return call.movedTo ? redirect(call) : handle(call);
  }
  throw notFound();
}

/** What a handler may ask for: the repository, issue or comment its path names, refused when there is none. */
function callOf(state, quota, call) {
  const { path, parts } = call;
  const found = { ...call, state, quota };
  if (!path.startsWith('/repos/')) return found;
  found.repo = state.repo(`${parts[0]}/${parts[1]}`);
  if (!found.repo) throw notFound();
  found.label = () => state.label(found.repo, decodeURIComponent(parts[2])) ?? fail(notFound());
  if (/\/issues\/comments\/\d+$/.test(path)) {
    found.comment = [...found.repo.issues.values()].flatMap((one) => one.comments).find((one) => one.databaseId === Number(parts[2]));
    if (!found.comment) throw notFound();
  } else if (/\/issues\/\d+/.test(path)) {
    const number = Number(parts[2]);
    if (found.repo.deleted.has(number)) throw new ForgeError('This issue was deleted', { status: 410 });
    found.movedTo = found.repo.moved.get(number);
    found.issue = found.repo.issues.get(number) ?? found.movedTo ?? fail(notFound());
  }
  return found;
}

/** A transferred issue's old address: 301 to the same path under the new one. */
function redirect({ path, movedTo }) {
  const url = `${API}${path.replace(/^\/repos\/[^/]+\/[^/]+\/issues\/\d+/, `/repos/${fullName(movedTo.repo)}/issues/${movedTo.number}`)}`;
  return json({ message: 'Moved Permanently', url }, 301, { Location: url });
}

const fail = (error) => { throw error; };
const defined = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** One page of `items`, with GitHub's `Link` header. */
function paged(call, items, shape) {
  const { page, perPage } = pageOf(call.query);
  return json(items.slice((page - 1) * perPage, page * perPage).map(shape), 200, linkHeader(call, items.length));
}

function pageOf(query) {
  return { page: Math.max(1, Number(query.get('page') ?? 1)), perPage: Math.min(100, Math.max(1, Number(query.get('per_page') ?? 30))) };
}

function linkHeader({ path, query }, total) {
  const { page, perPage } = pageOf(query);
  const last = Math.max(1, Math.ceil(total / perPage));
  const to = (number, rel) => {
    const there = new URLSearchParams(query);
    there.set('page', number);
    return `<${API}${path}?${there}>; rel="${rel}"`;
  };
  const links = [];
  if (page > 1) links.push(to(page - 1, 'prev'));
  if (page < last) links.push(to(page + 1, 'next'), to(last, 'last'));
  if (page > 1) links.push(to(1, 'first'));
  return links.length ? { Link: links.join(', ') } : {};
}

function listIssues(call) {
  const { state, repo, query } = call;
  const wanted = query.get('state') ?? 'open';
  const field = { updated: 'updatedAt', created: 'createdAt' }[query.get('sort') ?? 'created'];
  const value = (one) => (field ? one[field] : one.comments.length);
  const sign = query.get('direction') === 'asc' ? 1 : -1;
  const labels = (query.get('labels') ?? '').split(',').filter(Boolean);
  const creator = query.get('creator')?.toLowerCase();
  const assignee = query.get('assignee')?.toLowerCase();
  const found = [...repo.issues.values()].filter((one) => (wanted === 'all' || (wanted === 'open') === (one.state === 'OPEN'))
    && (!query.get('since') || one.updatedAt >= query.get('since'))
    && (!creator || one.author.login.toLowerCase() === creator)
    && (!assignee || assignee === '*' || one.assignees.some((user) => user.login.toLowerCase() === assignee))
    && labels.every((name) => one.labels.includes(state.label(repo, name))));
  return paged(call, found.sort((a, b) => sign * (compare(value(a), value(b)) || a.number - b.number)), issueJson);
}

function createIssue({ state, repo, body }) {
  const issue = state.createIssue(repo, {
    title: body.title, body: body.body ?? '', labels: (body.labels ?? []).map((one) => state.ensureLabel(repo, one.name ?? one)),
    assignees: (body.assignees ?? []).map((login) => state.user(login)), milestone: milestoneOf(repo, body.milestone),
  });
  return json(issueJson(issue), 201, { Location: issueJson(issue).url });
}

function milestoneOf(repo, number) {
  return number ? repo.milestones.find((one) => one.number === number) ?? fail(new ForgeError('Validation Failed')) : number;
}

function updateIssue({ state, repo, issue, body }) {
  const fields = { title: body.title, body: body.body };
  if (body.milestone !== undefined) fields.milestone = milestoneOf(repo, body.milestone);
  state.update(issue, fields);
  if (body.labels) state.setLabels(issue, body.labels.map((one) => state.ensureLabel(repo, one.name ?? one)));
  if (body.assignees) state.setAssignees(issue, body.assignees.map((login) => state.user(login)));
  if (body.state === 'closed') state.setState(issue, 'CLOSED', (body.state_reason ?? 'completed').toUpperCase());
  if (body.state === 'open') state.setState(issue, 'OPEN', 'REOPENED');
  return json(issueJson(issue));
}

function searchIssues(call) {
  const { state, query } = call;
  const q = query.get('q') ?? '';
  if (!q.trim()) throw new ForgeError('Validation Failed', { errors: [{ resource: 'Search', code: 'missing', field: 'q' }] });
  const found = search(state, q, { sort: query.get('sort'), order: query.get('order') ?? 'desc' });
  const { page, perPage } = pageOf(query);
  const items = found.slice((page - 1) * perPage, page * perPage).map((one) => ({ ...issueJson(one), score: 1 }));
  return json({ total_count: found.length, incomplete_results: false, items }, 200, linkHeader(call, Math.min(found.length, 1000)));
}

const userJson = (user) => ({
  login: user.login, id: user.databaseId, node_id: user.id, type: 'User', site_admin: false, url: `${API}/users/${user.login}`,
  html_url: `https://github.com/${user.login}`, avatar_url: `https://avatars.githubusercontent.com/${user.login}`,
});

const labelJson = (label) => ({
  id: label.databaseId, node_id: label.id, name: label.name, color: label.color, description: label.description, default: false,
  url: `${API}/repos/${fullName(label.repo)}/labels/${encodeURIComponent(label.name)}`,
});

const milestoneJson = (one) => ({
  id: one.databaseId, node_id: one.id, number: one.number, title: one.title, description: one.description, state: one.state.toLowerCase(),
  due_on: one.dueOn, created_at: one.createdAt,
});

const commentJson = (comment) => ({
  id: comment.databaseId, node_id: comment.id, body: comment.body, user: userJson(comment.author), html_url: commentUrl(comment),
  url: `${API}/repos/${fullName(comment.issue.repo)}/issues/comments/${comment.databaseId}`,
  issue_url: `${API}/repos/${fullName(comment.issue.repo)}/issues/${comment.issue.number}`,
  created_at: comment.createdAt, updated_at: comment.updatedAt, author_association: 'OWNER',
});

function issueJson(issue) {
  const url = `${API}/repos/${fullName(issue.repo)}/issues/${issue.number}`;
  return {
    id: issue.databaseId, node_id: issue.id, number: issue.number, title: issue.title, body: issue.body, url, html_url: issueUrl(issue),
    repository_url: `${API}/repos/${fullName(issue.repo)}`, comments_url: `${url}/comments`, events_url: `${url}/events`,
    state: issue.state === 'OPEN' ? 'open' : 'closed', state_reason: issue.stateReason?.toLowerCase() ?? null,
    user: userJson(issue.author), labels: issue.labels.map(labelJson), assignee: issue.assignees[0] ? userJson(issue.assignees[0]) : null,
    assignees: issue.assignees.map(userJson), milestone: issue.milestone && milestoneJson(issue.milestone), comments: issue.comments.length,
    locked: issue.locked, active_lock_reason: issue.lockReason?.toLowerCase().replace('_', ' ') ?? null, author_association: 'OWNER',
    created_at: issue.createdAt, updated_at: issue.updatedAt, closed_at: issue.closedAt,
    ...(issue.pr ? { draft: Boolean(issue.pr.draft), pull_request: { url: url.replace('/issues/', '/pulls/'), html_url: issueUrl(issue) } } : {}),
  };
}

function eventJson(one) {
  return defined({
    id: one.id, event: one.event, actor: userJson(one.actor), created_at: one.createdAt, label: one.label, rename: one.rename,
    assignee: one.assignee && userJson(one.assignee), state_reason: one.stateReason?.toLowerCase(), commit_id: null,
  });
}

function timeline(issue) {
  const comments = issue.comments.map((one) => ({ ...commentJson(one), event: 'commented', actor: userJson(one.author) }));
  return [...issue.events.map(eventJson), ...comments].sort((a, b) => compare(a.created_at, b.created_at) || a.id - b.id);
}

const repoJson = (repo) => ({
  id: repo.databaseId, node_id: repo.id, name: repo.name, full_name: fullName(repo), owner: userJson(repo.owner), private: repo.isPrivate,
  visibility: repo.isPrivate ? 'private' : 'public', html_url: repoUrl(repo), url: `${API}/repos/${fullName(repo)}`,
  description: repo.description, fork: false, archived: false, has_issues: repo.hasIssues, default_branch: repo.defaultBranch,
  open_issues_count: [...repo.issues.values()].filter((one) => one.state === 'OPEN').length, created_at: repo.createdAt,
  permissions: { admin: true, push: true, pull: true },
});

module.exports = { answer };
