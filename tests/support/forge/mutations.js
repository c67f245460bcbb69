'use strict';
// The mutations gh sends for issues, comments, labels and pull requests. No clientMutationId is kept: nothing here is
// idempotent, as on GitHub.

const { views } = require('./resolvers');

function root(state) {
  const view = views(state);
  const subject = (id) => state.byId(id, 'issue', 'pr');
  const labels = (ids) => (ids ?? []).map((id) => state.byId(id, 'label'));
  const users = (ids) => (ids ?? []).map((id) => state.byId(id, 'user'));
  const milestone = (id) => (id ? state.byId(id, 'milestone') : null);
  const answer = (issue) => ({ issue: view.issue(issue), pullRequest: view.issue(issue), actor: view.user(state.viewer) });

  /** Each mutation takes its `input` and answers its payload. */
  const mutations = {
    createIssue: (input) => answer(state.createIssue(state.byId(input.repositoryId, 'repo'), {
      title: input.title, body: input.body ?? '', labels: labels(input.labelIds), assignees: users(input.assigneeIds),
      milestone: milestone(input.milestoneId),
    })),
    updateIssue: (input) => {
      const issue = subject(input.id);
      update(issue, input);
      if (input.state) state.setState(issue, input.state, input.state === 'OPEN' ? 'REOPENED' : 'COMPLETED');
      return answer(issue);
    },
    updatePullRequest: (input) => {
      const issue = subject(input.pullRequestId);
      update(issue, input);
      return answer(issue);
    },
    closeIssue: (input) => changed(input.issueId, 'CLOSED', input.stateReason ?? 'COMPLETED'),
    reopenIssue: (input) => changed(input.issueId, 'OPEN', 'REOPENED'),
    closePullRequest: (input) => changed(input.pullRequestId, 'CLOSED'),
    reopenPullRequest: (input) => changed(input.pullRequestId, 'OPEN'),
    mergePullRequest: (input) => changed(input.pullRequestId, 'MERGED'),
    deleteIssue: (input) => {
      const issue = subject(input.issueId);
      state.deleteIssue(issue);
      return { repository: view.repo(issue.repo) };
    },
    transferIssue: (input) => answer(state.transferIssue(subject(input.issueId), state.byId(input.repositoryId, 'repo'))),
    addComment: (input) => {
      const comment = state.addComment(subject(input.subjectId), { body: input.body });
      return { commentEdge: { node: view.comment(comment), cursor: '' }, subject: view.issue(comment.issue) };
    },
    updateIssueComment: (input) => {
      const comment = state.byId(input.id, 'comment');
      state.editComment(comment, input.body);
      return { issueComment: view.comment(comment) };
    },
    deleteIssueComment: (input) => {
      state.deleteComment(state.byId(input.id, 'comment'));
      return {};
    },
    addLabelsToLabelable: (input) => {
      state.addLabels(subject(input.labelableId), labels(input.labelIds));
      return { labelable: view.issue(subject(input.labelableId)) };
    },
    removeLabelsFromLabelable: (input) => {
      state.removeLabels(subject(input.labelableId), labels(input.labelIds));
      return { labelable: view.issue(subject(input.labelableId)) };
    },
    addAssigneesToAssignable: (input) => {
      const issue = subject(input.assignableId);
      return assigned(issue, [...issue.assignees, ...users(input.assigneeIds)]);
    },
    removeAssigneesFromAssignable: (input) => {
      const issue = subject(input.assignableId);
      const gone = users(input.assigneeIds);
      return assigned(issue, issue.assignees.filter((user) => !gone.includes(user)));
    },
    replaceActorsForAssignable: (input) => {
      const named = (input.actorLogins ?? []).map((login) => state.user(login));
      return assigned(subject(input.assignableId), [...users(input.actorIds), ...named]);
    },
    lockLockable: (input) => {
      state.lock(subject(input.lockableId), input.lockReason);
      return { lockedRecord: view.issue(subject(input.lockableId)) };
    },
    unlockLockable: (input) => {
      state.unlock(subject(input.lockableId));
      return { unlockedRecord: view.issue(subject(input.lockableId)) };
    },
    pinIssue: (input) => pinned(input.issueId, true),
    unpinIssue: (input) => pinned(input.issueId, false),
  };

  function update(issue, input) {
    const fields = { title: input.title, body: input.body };
    if (input.milestoneId !== undefined) fields.milestone = milestone(input.milestoneId);
    state.update(issue, fields);
    if (input.labelIds) state.setLabels(issue, labels(input.labelIds));
    if (input.assigneeIds) state.setAssignees(issue, users(input.assigneeIds));
  }
  function changed(id, to, reason = null) {
    state.setState(subject(id), to, reason);
    return answer(subject(id));
  }
  function assigned(issue, list) {
    state.setAssignees(issue, list);
    return { assignable: view.issue(issue) };
  }
  function pinned(id, to) {
    subject(id).pinned = to;
    return answer(subject(id));
  }

  const fields = {};
  for (const [name, apply] of Object.entries(mutations)) fields[name] = ({ input }) => apply(input);
  return fields;
}

module.exports = { root };
