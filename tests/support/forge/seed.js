'use strict';
// Seeding and looking, for the control door: plain JSON in, plain JSON out.

const { ForgeError, stamp, fullName, issueUrl, commentUrl } = require('./state');

/** Adds what `seed` lists to the repository it names (the first one otherwise). Answers what was made. */
function seed(state, given) {
  for (const user of given.users ?? []) state.user(user.login ?? user, typeof user === 'object' ? user : {});
  if (given.viewer) state.viewer = state.user(given.viewer);
  for (const repo of given.repos ?? []) {
    if (typeof repo === 'string') state.addRepo(repo);
    else state.addRepo(repo.name, repoFields(repo));
  }
  const repo = given.repo ? state.addRepo(given.repo) : [...state.repos.values()][0];
  for (const label of given.labels ?? []) seedLabel(state, repo, label);
  for (const milestone of given.milestones ?? []) {
    const fields = typeof milestone === 'string' ? { title: milestone } : milestone;
    state.createMilestone(repo, { ...fields, dueOn: fields.due_on ?? null });
  }
  const made = { issues: [], comments: [] };
  for (const issue of [...(given.issues ?? []), ...(given.prs ?? []).map((pr) => ({ ...pr, pr: pr.pr ?? true }))]) {
    made.issues.push(described(seedIssue(state, repo, issue)));
  }
  for (const comment of given.comments ?? []) {
    const issue = repo.issues.get(comment.issue);
    if (!issue) throw new ForgeError(`no issue ${comment.issue} to comment on`);
    made.comments.push(describedComment(seedComment(state, issue, comment)));
  }
  return made;
}

function repoFields({ private: isPrivate, has_issues: hasIssues, description }) {
  const fields = {};
  if (isPrivate !== undefined) fields.isPrivate = isPrivate;
  if (hasIssues !== undefined) fields.hasIssues = hasIssues;
  if (description !== undefined) fields.description = description;
  return fields;
}

function seedLabel(state, repo, label) {
  const fields = typeof label === 'string' ? { name: label } : label;
  const known = state.label(repo, fields.name);
  if (known) Object.assign(known, fields);
  else state.createLabel(repo, fields);
}

function seedIssue(state, repo, given) {
  const createdAt = given.created_at ? stamp(given.created_at) : state.now();
  const milestone = given.milestone
    ? repo.milestones.find((one) => one.title === given.milestone) ?? state.createMilestone(repo, { title: given.milestone })
    : null;
  const issue = state.createIssue(repo, {
    number: given.number, title: given.title ?? `Issue ${given.number ?? repo.nextNumber}`, body: given.body, createdAt, milestone,
    author: given.author ? state.user(given.author) : undefined,
    labels: (given.labels ?? []).map((name) => state.ensureLabel(repo, name)),
    assignees: (given.assignees ?? []).map((login) => state.user(login)),
    pr: given.pr ? { head: 'feature', base: repo.defaultBranch, draft: false, merged: false, ...(given.pr === true ? {} : given.pr) } : null,
  });
  for (const comment of given.comments ?? []) seedComment(state, issue, { created_at: createdAt, ...comment });
  if (given.state && given.state.toUpperCase() !== 'OPEN') {
    const reason = (given.state_reason ?? 'completed').toUpperCase();
    state.setState(issue, given.state.toUpperCase(), reason, given.closed_at ? stamp(given.closed_at) : createdAt);
  }
  if (given.locked) state.lock(issue);
  if (given.updated_at) issue.updatedAt = stamp(given.updated_at);
  else if (given.created_at && !given.locked) issue.updatedAt = newest(issue);
  return issue;
}

const newest = (issue) => [issue.createdAt, issue.closedAt ?? '', ...issue.comments.map((one) => one.updatedAt)].sort().pop();

function seedComment(state, issue, given) {
  const comment = state.addComment(issue, {
    body: given.body ?? '…',
    author: given.author ? state.user(given.author) : undefined,
    createdAt: given.created_at ? stamp(given.created_at) : undefined,
  });
  if (given.updated_at) comment.updatedAt = stamp(given.updated_at);
  return comment;
}

/** Everything a test may want to look at; `repos` by `owner/name`, issues by ascending number. */
function snapshot(state) {
  const repos = {};
  for (const repo of state.repos.values()) {
    repos[fullName(repo)] = {
      labels: repo.labels.map(({ name, color, description }) => ({ name, color, description })),
      milestones: repo.milestones.map(({ number, title, state: open }) => ({ number, title, state: open.toLowerCase() })),
      issues: [...repo.issues.values()].sort((a, b) => a.number - b.number).map(described),
      deleted: [...repo.deleted],
    };
  }
  return { viewer: state.viewer.login, users: [...state.users.values()].map((user) => user.login), repos };
}

function described(issue) {
  return {
    number: issue.number, id: issue.id, database_id: issue.databaseId, url: issueUrl(issue), is_pr: Boolean(issue.pr),
    title: issue.title, body: issue.body, state: issue.state.toLowerCase(), state_reason: issue.stateReason?.toLowerCase() ?? null,
    author: issue.author.login, labels: issue.labels.map((label) => label.name), assignees: issue.assignees.map((user) => user.login),
    milestone: issue.milestone?.title ?? null, locked: issue.locked, pinned: issue.pinned,
    created_at: issue.createdAt, updated_at: issue.updatedAt, closed_at: issue.closedAt,
    comments: issue.comments.map(describedComment),
    events: issue.events.map(({ event, createdAt, actor }) => ({ event, created_at: createdAt, actor: actor.login })),
  };
}

function describedComment(comment) {
  return {
    id: comment.id, database_id: comment.databaseId, url: commentUrl(comment), author: comment.author.login, body: comment.body,
    created_at: comment.createdAt, updated_at: comment.updatedAt,
  };
}

module.exports = { seed, snapshot };
