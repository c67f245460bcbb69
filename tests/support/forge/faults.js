'use strict';
// Faults on demand: which request gets one, and what it gets instead of (or after) its answer.

const RATE_DOCS = 'https://docs.github.com/rest/overview/resources-in-the-rest-api#rate-limiting';
const DOCS = 'https://docs.github.com/rest';
const WENT_WRONG = 'Something went wrong while executing your query. This may be the result of a timeout, or it could be a GitHub bug.';
const SAML = 'Resource protected by organization SAML enforcement. You must grant your OAuth token access to this organization.';
const SECONDARY = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.';
const UNICORN = '<!DOCTYPE html>\n<html><head><title>Unicorn! &middot; GitHub</title></head>\n'
  + '<body><p><strong>We had issues producing the response to your request.</strong></p></body></html>\n';

const SERVER_ERRORS = {
  500: 'Internal Server Error', 502: 'Server Error', 503: 'Service Unavailable',
  504: "We couldn't respond to your request in time. Sorry about that. "
    + 'Please try resubmitting your request and contact us if the problem persists.',
};

const REFUSALS = {
  401: { message: 'Bad credentials' },
  403: { message: 'Must have admin rights to Repository.' },
  404: { message: 'Not Found' },
  410: { message: 'This issue was deleted' },
  422: { message: 'Validation Failed', errors: [{ resource: 'Issue', code: 'missing_field', field: 'title' }] },
};

/**
 * Answers by fault name: `(fault, request)` → `{status, body, headers}`. `body` is JSON unless it is a string.
 * `request.graphql` says which door; `request.userId` is the viewer's number.
 */
const ANSWERS = {
  401: refusal(401), 403: refusal(403), 404: refusal(404), 410: refusal(410), 422: refusal(422),
  500: serverError(500), 502: serverError(502), 503: serverError(503), 504: serverError(504),
  429: (fault) => ({
    status: 429, headers: retryAfter(fault.retry_after_s),
    body: { message: fault.message ?? 'Too many requests. Please try again later.', documentation_url: RATE_DOCS },
  }),
  sso: (fault) => ({
    status: 403, headers: { 'X-GitHub-SSO': `required; url=${fault.url ?? 'https://github.com/orgs/acme/sso?authorization_request=A1'}` },
    body: { message: fault.message ?? SAML, documentation_url: DOCS },
  }),
  integration: (fault) => ({
    status: 403, body: { message: fault.message ?? 'Resource not accessible by integration', documentation_url: DOCS, status: '403' },
  }),
  primary: primaryLimit,
  secondary: (fault) => ({
    status: fault.status ?? 403, headers: retryAfter(fault.retry_after_s === undefined ? 60 : fault.retry_after_s),
    body: { message: fault.message ?? SECONDARY, documentation_url: RATE_DOCS },
  }),
  graphql: ({ data = null, errors, type, path_in_query: path, message = WENT_WRONG }) => ({
    status: 200, body: { data, errors: errors ?? [{ type, path, message }] },
  }),
  answer: (fault) => ({ status: fault.status ?? 200, body: fault.body ?? '', headers: fault.content_type ? { 'Content-Type': fault.content_type } : {} }),
};

/** Faults that do something to the connection; the server carries them out. */
const CONNECTION = ['drop', 'applied-then-drop', 'applied-then-hang', 'cut', 'hang', 'latency'];
const APPLIED_THEN_STATUS = /^applied-then-(500|502|503|504)$/;

function refusal(status) {
  return (fault) => ({
    status, body: { ...REFUSALS[status], ...(fault.message ? { message: fault.message } : {}), documentation_url: DOCS, status: String(status) },
  });
}

function serverError(status) {
  return (fault) => {
    if (fault.body === 'html') return { status, body: UNICORN, headers: { 'Content-Type': 'text/html; charset=utf-8' } };
    if (fault.body === 'empty') return { status, body: '' };
    return { status, headers: retryAfter(fault.retry_after_s), body: { message: fault.message ?? SERVER_ERRORS[status], documentation_url: DOCS } };
  };
}

/** The primary limit: GraphQL says it with HTTP 200 (or 403 with `http: true`), REST with 403 (or `status`). */
function primaryLimit(fault, request) {
  const quota = { remaining: 0, reset: Math.floor(Date.now() / 1000) + (fault.reset_in_s ?? 60) };
  if (request.graphql && !fault.http) {
    const message = fault.message ?? `API rate limit exceeded for user ID ${request.userId}.`;
    return { status: 200, quota, body: { errors: [{ type: 'RATE_LIMITED', message }] } };
  }
  const message = fault.message
    ?? `API rate limit exceeded for user ID ${request.userId}. If you reach out to GitHub Support for help, please include the request ID.`;
  return { status: fault.status ?? 403, quota, body: { message, documentation_url: RATE_DOCS } };
}

const retryAfter = (seconds) => (seconds === undefined || seconds === null ? {} : { 'Retry-After': seconds });

/** The faults waiting for their requests, oldest first. */
class Faults {
  constructor() {
    this.nextId = 1;
    this.clear();
  }

  /** Adds one fault after checking it; answers it with its id. See README for the fields. */
  add(given) {
    const name = String(given.fault ?? '');
    if (!ANSWERS[name] && !CONNECTION.includes(name) && !APPLIED_THEN_STATUS.test(name)) {
      throw new Error(`no fault named '${name}'; there are ${names().join(', ')}`);
    }
    const on = given.on ?? 'any';
    if (!['read', 'mutation', 'rate_limit', 'any'].includes(on)) throw new Error(`'on' is read, mutation, rate_limit or any, not '${on}'`);
    const fault = { ...given, id: this.nextId++, fault: name, on, skip: given.skip ?? 0, times: given.times ?? null, hits: 0 };
    this.list.push(fault);
    return fault;
  }

  /** Removes one fault, or all; those that were holding requests let them go. */
  clear(id) {
    this.list = id === undefined ? [] : (this.list ?? []).filter((fault) => fault.id !== id);
    for (const release of this.held ?? []) if (!this.list.includes(release.fault)) release();
    this.held = (this.held ?? []).filter((release) => this.list.includes(release.fault));
  }

  /** The faults for this request: milliseconds to wait, and at most one other; counts them as used. */
  take(request) {
    const taken = { latencyMs: 0, fault: null };
    for (const fault of this.list) {
      if (!fits(fault, request) || (fault.fault !== 'latency' && taken.fault)) continue;
      if (fault.skip > 0) {
        fault.skip -= 1;
        continue;
      }
      if (fault.times !== null && fault.hits >= fault.times) continue;
      fault.hits += 1;
      if (fault.fault === 'latency') taken.latencyMs += fault.ms ?? 0;
      else taken.fault = fault;
    }
    return taken;
  }

  /** Resolves when `fault` is cleared. */
  cleared(fault) {
    return new Promise((resolve) => {
      this.held.push(Object.assign(() => resolve(), { fault }));
    });
  }
}

function fits(fault, request) {
  if (fault.on !== 'any' && fault.on !== request.kind) return false;
  if (fault.operation && fault.operation !== request.operation) return false;
  if (fault.path && !request.path.startsWith(fault.path)) return false;
  if (fault.method && fault.method.toUpperCase() !== request.method) return false;
  return fault.fault !== 'graphql' || request.graphql;
}

const names = () => [...Object.keys(ANSWERS), ...CONNECTION, 'applied-then-500', 'applied-then-502', 'applied-then-503', 'applied-then-504'];

module.exports = { Faults, ANSWERS, APPLIED_THEN_STATUS, primaryLimit };
