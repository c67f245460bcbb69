'use strict';
// The forge's memory: repositories with issues (pull requests are issues with `pr` set), comments, labels,
// milestones and users, and the few operations that change them. GraphQL and REST both go through here, so
// that a write seen through one door is seen through the other.

const crypto = require('node:crypto');

/** A refusal with the words and codes GitHub uses: `type` for GraphQL, `status` for REST. */
class ForgeError extends Error {
  constructor(message, { type = 'UNPROCESSABLE', status = 422, errors } = {}) {
    super(message);
    this.type = type;
    this.status = status;
    this.errors = errors;
  }
}

const MAX_BODY_CHARS = 65536;

class State {
  constructor({ repos = ['acme/widget'], viewer = 'monalisa' } = {}) {
    this.initial = { repos, viewer };
    this.reset();
  }

  /** Forgets everything but the repositories and the viewer the server was started with. */
  reset() {
    this.clockSkewS = 0;
    this.users = new Map();
    this.repos = new Map();
    this.nodes = new Map();
    this.nextDatabaseId = 2000000001;
    this.viewer = this.user(this.initial.viewer);
    for (const name of this.initial.repos) this.addRepo(name);
  }

  /** The forge's clock as GitHub prints it: UTC, whole seconds. */
  now() {
    return stamp(Date.now() + this.clockSkewS * 1000);
  }

  /** A new node: an opaque id for GraphQL, a number for REST, findable by its id. */
  node(kind, prefix, fields) {
    const databaseId = this.nextDatabaseId++;
    const hash = crypto.createHash('sha1').update(`${kind}:${databaseId}`).digest('base64url').slice(0, 16);
    const node = { kind, id: `${prefix}_kwDO${hash}`, databaseId, ...fields };
    this.nodes.set(node.id, node);
    return node;
  }

  /** The node with this id; a wrong kind or an unknown id is GitHub's NOT_FOUND. */
  byId(id, ...kinds) {
    const node = this.nodes.get(id);
    if (!node || (kinds.length && !kinds.includes(node.kind))) {
      throw new ForgeError(`Could not resolve to a node with the global id of '${id}'.`, { type: 'NOT_FOUND', status: 404 });
    }
    return node;
  }

  /** The user with this login, made on first mention. */
  user(login, fields = {}) {
    const key = login.toLowerCase();
    if (!this.users.has(key)) this.users.set(key, this.node('user', 'U', { login, name: login }));
    return Object.assign(this.users.get(key), fields);
  }

  addRepo(fullName, fields = {}) {
    const [owner, name] = fullName.split('/');
    if (!owner || !name) throw new ForgeError(`not OWNER/NAME: '${fullName}'`);
    const key = fullName.toLowerCase();
    if (!this.repos.has(key)) {
      this.repos.set(key, this.node('repo', 'R', {
        owner: this.user(owner), name, hasIssues: true, isPrivate: false, description: '', defaultBranch: 'main',
        issues: new Map(), labels: [], milestones: [], deleted: new Set(), moved: new Map(), nextNumber: 1, createdAt: this.now(),
      }));
    }
    return Object.assign(this.repos.get(key), fields);
  }

  repo(fullName) {
    return this.repos.get(fullName.toLowerCase());
  }

  label(repo, name) {
    return repo.labels.find((label) => label.name.toLowerCase() === name.toLowerCase());
  }

  createLabel(repo, { name, color = 'ededed', description = '' }) {
    if (this.label(repo, name)) {
      throw new ForgeError('Validation Failed', { errors: [{ resource: 'Label', code: 'already_exists', field: 'name' }] });
    }
    const label = this.node('label', 'LA', { repo, name, color, description, createdAt: this.now() });
    repo.labels.push(label);
    return label;
  }

  /** The label of this name, made if the repository has none, as REST does when an issue names one. */
  ensureLabel(repo, name) {
    return this.label(repo, name) ?? this.createLabel(repo, { name });
  }

  deleteLabel(repo, label) {
    repo.labels = repo.labels.filter((other) => other !== label);
    for (const issue of repo.issues.values()) issue.labels = issue.labels.filter((other) => other !== label);
    this.nodes.delete(label.id);
  }

  createMilestone(repo, { title, description = '', state = 'OPEN', dueOn = null, number }) {
    const milestone = this.node('milestone', 'MI', {
      repo, title, description, state: state.toUpperCase(), dueOn, number: number ?? repo.milestones.length + 1, createdAt: this.now(),
    });
    repo.milestones.push(milestone);
    return milestone;
  }

  createIssue(repo, given) {
    if (!repo.hasIssues && !given.pr) throw new ForgeError('Issues are disabled for this repo', { type: 'FORBIDDEN', status: 410 });
    if (!given.title?.trim()) {
      throw new ForgeError("Title can't be blank", { errors: [{ resource: 'Issue', code: 'missing_field', field: 'title' }] });
    }
    checkBody(given.body ?? '');
    const createdAt = given.createdAt ?? this.now();
    const number = given.number ?? repo.nextNumber;
    if (repo.issues.has(number)) throw new ForgeError(`number ${number} is taken`);
    repo.nextNumber = Math.max(repo.nextNumber, number + 1);
    const issue = this.node(given.pr ? 'pr' : 'issue', given.pr ? 'PR' : 'I', {
      repo, number, title: given.title, body: given.body ?? '', state: 'OPEN', stateReason: null, locked: false, lockReason: null,
      pinned: false, author: given.author ?? this.viewer, labels: [], assignees: [], milestone: given.milestone ?? null,
      comments: [], events: [], createdAt, updatedAt: createdAt, closedAt: null, pr: given.pr ?? null,
    });
    repo.issues.set(number, issue);
    repo.deleted.delete(number);
    repo.moved.delete(number);
    this.addLabels(issue, given.labels ?? [], createdAt);
    this.setAssignees(issue, given.assignees ?? [], createdAt);
    return issue;
  }

  deleteIssue(issue) {
    issue.repo.issues.delete(issue.number);
    issue.repo.deleted.add(issue.number);
    this.nodes.delete(issue.id);
  }

  /** Moves an issue to another repository of the forge; its old number leads to the new issue from then on. */
  transferIssue(issue, target) {
    const { title, body, author, createdAt } = issue;
    const moved = this.createIssue(target, { title, body, author, createdAt });
    for (const comment of issue.comments) this.addComment(moved, comment);
    this.deleteIssue(issue);
    issue.repo.deleted.delete(issue.number);
    issue.repo.moved.set(issue.number, moved);
    return moved;
  }

  addComment(issue, { body, author = this.viewer, createdAt = this.now() }) {
    if (!body?.trim()) {
      throw new ForgeError('Body cannot be blank', { errors: [{ resource: 'IssueComment', code: 'missing_field', field: 'body' }] });
    }
    checkBody(body);
    const comment = this.node('comment', 'IC', { issue, body, author, createdAt, updatedAt: createdAt });
    issue.comments.push(comment);
    this.touch(issue, createdAt);
    return comment;
  }

  editComment(comment, body) {
    checkBody(body);
    Object.assign(comment, { body, updatedAt: this.now() });
    this.touch(comment.issue, comment.updatedAt);
  }

  deleteComment(comment) {
    comment.issue.comments = comment.issue.comments.filter((other) => other !== comment);
    this.nodes.delete(comment.id);
    this.touch(comment.issue);
  }

  /** Closes or reopens. Closing what is closed changes the reason only, reopening what is open nothing; no second event. */
  setState(issue, state, reason, at = this.now()) {
    const changed = issue.state !== state;
    if (!changed && state === 'OPEN') return;
    Object.assign(issue, { state, stateReason: issue.pr ? null : reason, closedAt: state === 'OPEN' ? null : (issue.closedAt ?? at) });
    if (changed) this.event(issue, state === 'OPEN' ? 'reopened' : 'closed', { stateReason: issue.stateReason }, at);
    else this.touch(issue, at);
  }

  update(issue, { title, body, milestone }) {
    if (title !== undefined && title !== null && title !== issue.title) {
      if (!title.trim()) throw new ForgeError("Title can't be blank");
      this.event(issue, 'renamed', { rename: { from: issue.title, to: title } });
      issue.title = title;
    }
    if (body !== undefined && body !== null) {
      checkBody(body);
      issue.body = body;
    }
    if (milestone !== undefined) issue.milestone = milestone;
    this.touch(issue);
  }

  addLabels(issue, labels, at) {
    for (const label of labels) {
      if (issue.labels.includes(label)) continue;
      issue.labels.push(label);
      this.event(issue, 'labeled', { label: { name: label.name, color: label.color } }, at);
    }
  }

  removeLabels(issue, labels) {
    for (const label of labels) {
      if (!issue.labels.includes(label)) continue;
      issue.labels = issue.labels.filter((other) => other !== label);
      this.event(issue, 'unlabeled', { label: { name: label.name, color: label.color } });
    }
  }

  setLabels(issue, labels) {
    this.removeLabels(issue, issue.labels.filter((label) => !labels.includes(label)));
    this.addLabels(issue, labels);
  }

  setAssignees(issue, users, at) {
    for (const user of users) if (!issue.assignees.includes(user)) this.event(issue, 'assigned', { assignee: user }, at);
    for (const user of issue.assignees) if (!users.includes(user)) this.event(issue, 'unassigned', { assignee: user }, at);
    issue.assignees = [...new Set(users)];
  }

  lock(issue, reason) {
    Object.assign(issue, { locked: true, lockReason: reason ?? null });
    this.event(issue, 'locked', { lockReason: reason ?? null });
  }

  unlock(issue) {
    Object.assign(issue, { locked: false, lockReason: null });
    this.event(issue, 'unlocked');
  }

  event(issue, event, fields = {}, at = this.now()) {
    issue.events.push({ id: this.nextDatabaseId++, event, actor: this.viewer, createdAt: at, ...fields });
    this.touch(issue, at);
  }

  touch(issue, at = this.now()) {
    if (at > issue.updatedAt) issue.updatedAt = at;
  }
}

function checkBody(body) {
  if (body.length > MAX_BODY_CHARS) throw new ForgeError(`Body is too long (maximum is ${MAX_BODY_CHARS} characters)`);
}

/** Milliseconds, a date string or a Date as `2026-01-02T03:04:05Z`. */
function stamp(when) {
  return new Date(when).toISOString().replace(/\.\d+Z$/, 'Z');
}

const fullName = (repo) => `${repo.owner.login}/${repo.name}`;
const repoUrl = (repo) => `https://github.com/${fullName(repo)}`;
const issueUrl = (issue) => `${repoUrl(issue.repo)}/${issue.pr ? 'pull' : 'issues'}/${issue.number}`;
const commentUrl = (comment) => `${issueUrl(comment.issue)}#issuecomment-${comment.databaseId}`;

module.exports = { State, ForgeError, stamp, fullName, repoUrl, issueUrl, commentUrl };
