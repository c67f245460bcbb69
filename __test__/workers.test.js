'use strict';
const assert = require('node:assert/strict');
const { once } = require('node:events');
const path = require('node:path');
const test = require('node:test');
const { Worker } = require('node:worker_threads');
const health = require('../scripts/forge/health.js');
const { root, scene } = require('./scene.js');

const module_ = JSON.stringify(path.join(root, 'scripts/forge/health.js'));
const start = (/** @type {string} */ code, /** @type {object} */ options) =>
  new Worker(
    `const { parentPort, workerData: options } = require('node:worker_threads');
     const health = require(${module_});
     ${code}`,
    { eval: true, workerData: options },
  );

test('twenty workers read and record at once', async (t) => {
  const { options } = scene(t);
  const code = `for (let i = 0; i < 20; i++) health.record({ rc: 0, ...options });
    parentPort.postMessage(health.isTrustworthy(options));`;
  const workers = Array.from({ length: 20 }, () => start(code, options));
  const answers = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0]));
  await Promise.all(workers.map((worker) => worker.terminate()));
  assert.deepEqual(answers, Array(20).fill(true));
  assert.equal(health.observations(options).length, 400);
});

test('workers that are terminated in the middle of a call or a probe leave everything working', async (t) => {
  const { options, calls } = scene(t, 'sleep 0.2; exit 0');
  const busy = `parentPort.postMessage('started'); for (;;) health.isTrustworthy({ ttl: 0, probe: false, ...options });`;
  const asking = `parentPort.postMessage('started'); for (;;) health.probe(options);`;
  const workers = Array.from({ length: 20 }, (_, i) => start(i % 5 === 0 ? asking : busy, options));
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  await Promise.all(workers.map((worker) => worker.terminate()));
  assert.ok(calls().length > 0);
  assert.equal(health.isTrustworthy(options), true);
});

test('a worker has an environment of its own', async (t) => {
  const { options } = scene(t);
  health.record({ rc: 0, ...options });
  const worker = new Worker(`require('node:worker_threads').parentPort.postMessage(require(${module_}).status({ probe: false }).state)`, {
    eval: true,
    env: options.env,
  });
  assert.deepEqual(await once(worker, 'message'), ['operational']);
  await worker.terminate();
});
