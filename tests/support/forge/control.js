'use strict';
// The control door, `/_forge/…`: what a test or a script says to the forge itself. Never logged, faulted or counted.

const { seed, snapshot } = require('./seed');

const ROUTES = {
  'GET /_forge/health': () => ({ ok: true }),
  'POST /_forge/fault': (forge, given) => (Array.isArray(given) ? given : [given]).map((one) => forge.faults.add(one)),
  'GET /_forge/faults': (forge) => forge.faults.list,
  'DELETE /_forge/faults': (forge, _given, url) => {
    forge.faults.clear(url.searchParams.has('id') ? Number(url.searchParams.get('id')) : undefined);
    return { ok: true };
  },
  'GET /_forge/log': (forge, _given, url) => wanted(forge.log, url.searchParams).map((entry) => logLine(entry, url.searchParams.has('graphql'))),
  'DELETE /_forge/log': (forge) => {
    forge.log.length = 0;
    return { ok: true };
  },
  'GET /_forge/state': (forge) => ({ ...snapshot(forge.state), quota: forge.quota.rows(), faults: forge.faults.list }),
  'POST /_forge/seed': (forge, given) => seed(forge.state, given),
  'POST /_forge/quota': (forge, given) => {
    forge.quota.set(given);
    return forge.quota.rows();
  },
  'POST /_forge/clock': (forge, given) => {
    forge.state.clockSkewS = given.skew_s ?? 0;
    return { now: forge.state.now() };
  },
  'POST /_forge/reset': (forge) => {
    forge.faults.clear();
    forge.state.reset();
    forge.quota.reset();
    forge.log.length = 0;
    return { ok: true };
  },
};

/** Answers one control request through `respond(status, body)`; a bad one gets 400 and says why. */
function answer(forge, method, url, text, respond) {
  const handle = ROUTES[`${method} ${url.pathname}`];
  if (!handle) {
    respond(404, { error: `no ${method} ${url.pathname}; there are ${Object.keys(ROUTES).join(', ')}` });
    return;
  }
  try {
    respond(200, handle(forge, text ? JSON.parse(text) : {}, url));
  } catch (error) {
    respond(400, { error: error.message });
  }
}

/** `?kind=`, `?operation=`, `?path=` narrow the log. */
function wanted(log, query) {
  return log.filter((entry) => ['kind', 'operation', 'path', 'method'].every((key) => !query.has(key) || entry[key] === query.get(key)));
}

function logLine({ graphql, ...entry }, withQuery = false) {
  return withQuery ? { ...entry, graphql } : entry;
}

module.exports = { answer, logLine };
