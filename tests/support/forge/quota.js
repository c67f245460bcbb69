'use strict';
// Quota counters that go down by one a request and fill up again when their window ends.

const WINDOW_S = 3600;
const LIMITS = { graphql: 5000, core: 5000, search: 30, code_search: 10 };

class Quota {
  constructor(clock) {
    this.clock = clock;
    this.reset();
  }

  reset() {
    this.enforce = false;
    this.resources = {};
    for (const [name, limit] of Object.entries(LIMITS)) {
      this.resources[name] = { limit, used: 0, remaining: limit, reset: this.clock() + windowS(name) };
    }
  }

  /** The counter as it stands now, filled up if its window is over. */
  row(name) {
    const row = this.resources[name];
    if (this.clock() >= row.reset) Object.assign(row, { used: 0, remaining: row.limit, reset: this.clock() + windowS(name) });
    return row;
  }

  /** Takes one request. Answers false when there was none left and quotas are enforced. */
  spend(name) {
    const row = this.row(name);
    if (row.remaining > 0) {
      row.remaining -= 1;
      row.used += 1;
      return true;
    }
    return !this.enforce;
  }

  /** `{enforce?, graphql?: {limit?, used?, remaining?, reset?, reset_in_s?}, core?, search?}`; a bare number is `remaining`. */
  set(given) {
    for (const [name, value] of Object.entries(given)) {
      if (name === 'enforce' || name === 'enforceQuota') {
        this.enforce = Boolean(value);
        continue;
      }
      const row = this.resources[name];
      if (!row) throw new Error(`no quota named '${name}'`);
      const fields = typeof value === 'number' ? { remaining: value } : { ...value };
      if (fields.reset_in_s !== undefined) fields.reset = this.clock() + fields.reset_in_s;
      delete fields.reset_in_s;
      Object.assign(row, fields);
      if (fields.remaining !== undefined && fields.used === undefined) row.used = Math.max(0, row.limit - row.remaining);
      if (fields.used !== undefined && fields.remaining === undefined) row.remaining = Math.max(0, row.limit - row.used);
    }
  }

  rows() {
    const rows = {};
    for (const name of Object.keys(this.resources)) rows[name] = { ...this.row(name), resource: name };
    return rows;
  }

  headers(name, override = {}) {
    const row = { ...this.row(name), ...override };
    return {
      'X-RateLimit-Limit': row.limit, 'X-RateLimit-Remaining': row.remaining, 'X-RateLimit-Used': row.used,
      'X-RateLimit-Reset': row.reset, 'X-RateLimit-Resource': name,
    };
  }
}

const windowS = (name) => (name === 'search' || name === 'code_search' ? 60 : WINDOW_S);

/** Which counter a path is counted against, or null for what is free. */
function resourceOf(path) {
  if (path === '/graphql' || path === '/api/graphql') return 'graphql';
  if (path === '/rate_limit') return null;
  if (path === '/search/code') return 'code_search';
  return path.startsWith('/search/') ? 'search' : 'core';
}

module.exports = { Quota, resourceOf };
