'use strict';
// The forge's HTTP side on a unix socket: classify, log, spend quota, fault, answer.

const fs = require('node:fs');
const http = require('node:http');
const { setTimeout: sleep } = require('node:timers/promises');
const graphql = require('./graphql');
const rest = require('./rest');
const control = require('./control');
const { State, ForgeError } = require('./state');
const { Quota, resourceOf } = require('./quota');
const { Faults, ANSWERS, APPLIED_THEN_STATUS, primaryLimit } = require('./faults');

class Forge {
  /** `repos`: `owner/name` each, `logFile`: where each request is also written as a JSON line. */
  constructor({ repos, logFile } = {}) {
    this.state = new State(repos?.length ? { repos } : {});
    this.quota = new Quota(() => Math.floor(Date.now() / 1000) + this.state.clockSkewS);
    this.faults = new Faults();
    this.log = [];
    this.logFile = logFile;
    this.server = http.createServer((req, res) => this.serve(req, res).catch((error) => broken(res, error)));
  }

  listen(socket) {
    graphql.githubSchema();
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(socket, () => {
        fs.chmodSync(socket, 0o600);
        resolve();
      });
    });
  }

  close() {
    this.server.close();
    this.server.closeAllConnections();
  }

  async serve(req, res) {
    const text = await bodyOf(req);
    const url = new URL(req.url, 'http://api.github.com');
    if (url.pathname.startsWith('/_forge/')) {
      control.answer(this, req.method, url, text, (status, body) => reply(res, { status, body }));
      return;
    }
    const request = classify(req, url, text);
    request.userId = this.state.viewer.databaseId;
    const entry = this.note(request);
    const spent = !request.resource || this.quota.spend(request.resource);
    const { latencyMs, fault } = this.faults.take(request);
    entry.fault = fault?.fault ?? (latencyMs ? 'latency' : null);
    if (latencyMs) await sleep(latencyMs);
    const answer = await this.answered(request, fault, spent, res, entry);
    if (answer) this.send(res, request, answer, fault);
    entry.status = answer?.status ?? null;
    entry.done = true;
    if (this.logFile) fs.appendFileSync(this.logFile, `${JSON.stringify(control.logLine(entry))}\n`);
  }

  /** The answer for this request under `fault`, or null when the connection was ended instead. */
  async answered(request, fault, spent, res, entry) {
    const real = () => {
      entry.applied = spent;
      return spent ? this.real(request) : primaryLimit({ reset_in_s: this.quota.row(request.resource).reset - this.quota.clock() }, request);
    };
    if (!fault) return real();
    const name = fault.fault;
    if (ANSWERS[name]) return ANSWERS[name](fault, request);
    const later = APPLIED_THEN_STATUS.exec(name);
    if (later) {
      real();
      return ANSWERS[later[1]](fault, request);
    }
    if (name === 'cut') return real();
    if (name.startsWith('applied')) real();
    if (name.endsWith('hang')) {
      await this.faults.cleared(fault);
      if (name === 'hang' && !res.destroyed && !res.socket?.destroyed) return real();
    }
    res.socket?.destroy();
    return null;
  }

  /** What a healthy GitHub answers. */
  real(request) {
    if (request.graphql && !request.authorization) {
      const message = 'This endpoint requires you to be authenticated.';
      return { status: 401, body: { message, documentation_url: 'https://docs.github.com/graphql' } };
    }
    try {
      if (request.graphql) return { status: 200, body: graphql.execute(this.state, this.quota, request.body ?? {}) };
      return rest.answer(this.state, this.quota, request);
    } catch (error) {
      if (!(error instanceof ForgeError)) throw error;
      const body = { message: error.message, documentation_url: 'https://docs.github.com/rest', status: String(error.status) };
      return { status: error.status, body: error.errors ? { ...body, errors: error.errors } : body };
    }
  }

  send(res, request, answer, fault) {
    const resource = request.resource ?? 'core';
    const headers = {
      Date: new Date(Date.now() + this.state.clockSkewS * 1000).toUTCString(),
      'X-OAuth-Scopes': 'gist, read:org, repo, workflow', 'X-GitHub-Request-Id': `F0${request.n.toString(16)}`,
      ...this.quota.headers(resource, answer.quota), ...answer.headers, ...fault?.headers,
    };
    reply(res, { ...answer, headers, cut: fault?.fault === 'cut' });
  }

  note(request) {
    request.n = this.log.length + 1;
    const { n, kind, method, path, operation, variables, query, resource, userAgent } = request;
    const at = new Date();
    const entry = {
      n, at: at.toISOString(), at_ms: at.getTime(), kind, method, path, query: query.size ? `?${query}` : '', operation, variables, resource,
      fault: null, status: null, applied: false, done: false, user_agent: userAgent, graphql: request.graphql ? request.body?.query : undefined,
    };
    this.log.push(entry);
    return entry;
  }
}

async function bodyOf(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** What a request is: `kind` read, mutation or rate_limit; for GraphQL its operation and variables. */
function classify(req, url, text) {
  const path = url.pathname.replace(/^\/api(?:\/v3)?(?=\/)/, '');
  const isGraphql = path === '/graphql';
  let body = null;
  try {
    body = text ? JSON.parse(text) : null;
  } catch {
    // a body that is no JSON is answered as an empty one
  }
  const asked = isGraphql && body ? graphql.inspect(body) : null;
  const writes = isGraphql ? Boolean(asked?.writes) : !['GET', 'HEAD'].includes(req.method);
  return {
    method: req.method, path, query: url.searchParams, body, graphql: isGraphql, resource: resourceOf(path),
    kind: path === '/rate_limit' ? 'rate_limit' : writes ? 'mutation' : 'read',
    operation: asked?.name ?? null, variables: isGraphql ? body?.variables ?? null : writes ? body : null,
    authorization: req.headers.authorization, userAgent: req.headers['user-agent'] ?? null,
  };
}

/** Writes one answer. Each ends its connection, so that a dropped one is never retried behind a test's back. */
function reply(res, { status, body, headers = {}, cut = false }) {
  const text = typeof body === 'string' ? body : status === 204 ? '' : JSON.stringify(body);
  res.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(text), Connection: 'close', ...headers,
  });
  if (!cut) return res.end(text);
  return res.write(Buffer.from(text).subarray(0, Math.floor(Buffer.byteLength(text) / 2)), () => res.socket?.destroy());
}

/** The client went away, or a mistake of the forge's own: said on stderr, never passed off as GitHub's. */
function broken(res, error) {
  if (error.code === 'ECONNRESET') return;
  process.stderr.write(`forge: ${error.stack}\n`);
  if (!res.headersSent) reply(res, { status: 500, body: { message: `the forge is broken: ${error.message}` } });
}

module.exports = { Forge };
