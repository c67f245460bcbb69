'use strict';
// The names in index.d.ts and the names the modules export are the same: tsc finds one that is missing from
// the lists below, running them finds one that is missing from a module.
const assert = require('node:assert/strict');
const test = require('node:test');
const forge = require('..');

/** @type {{[K in keyof typeof forge]: {[N in keyof (typeof forge)[K]]: 'function' | 'object'}}} */
const names = {
  batch: {
    readIssues: 'function',
  },
  budget: {
    compact: 'function',
    doctorLine: 'function',
    document: 'function',
    measure: 'function',
    plan: 'function',
    refresh: 'function',
    resourceFor: 'function',
    trim: 'function',
  },
  cache: {
    clear: 'function',
    isCacheable: 'function',
    keyFor: 'function',
    lookup: 'function',
    status: 'function',
    store: 'function',
  },
  patient: {
    run: 'function',
  },
  queue: {
    clear: 'function',
    drop: 'function',
    enqueue: 'function',
    isQueueable: 'function',
    list: 'function',
    overview: 'function',
    replay: 'function',
    resolve: 'function',
    show: 'function',
    status: 'function',
  },
  health: {
    EXIT_CODES: 'object',
    SIGNALS: 'object',
    STATES: 'object',
    classify: 'function',
    classifySignal: 'function',
    isTrustworthy: 'function',
    observations: 'function',
    probe: 'function',
    record: 'function',
    reset: 'function',
    status: 'function',
  },
};

/** @param {object} module */
const kinds = (module) => Object.fromEntries(Object.entries(module).map(([name, value]) => [name, typeof value]));

test('every module exports exactly what index.d.ts declares', () => {
  assert.deepEqual(Object.keys(forge).sort(), Object.keys(names).sort());
  for (const [name, module] of Object.entries(forge)) {
    assert.deepEqual(kinds(module), names[/** @type {keyof typeof names} */ (name)]);
    assert.equal(require(`../scripts/forge/${name}.js`), module);
  }
});

test('the constants are the ones of the specification', () => {
  assert.deepEqual(forge.health.STATES, ['operational', 'degraded', 'unreachable', 'unknown']);
  assert.deepEqual(forge.health.SIGNALS, ['ok', 'net', 'server', 'ratelimit', 'auth', 'notfound', 'other']);
  assert.deepEqual(forge.health.EXIT_CODES, { operational: 0, degraded: 3, unreachable: 4, unknown: 5 });
  assert.ok(Object.isFrozen(forge.health.STATES) && Object.isFrozen(forge.health.EXIT_CODES));
});
