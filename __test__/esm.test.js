'use strict';
const assert = require('node:assert/strict');
const test = require('node:test');

test('named imports work from an ES module', async () => {
  const facade = await import('../scripts/forge/health.js');
  const forge = await import('../index.js');
  const names = ['EXIT_CODES', 'SIGNALS', 'STATES', 'classify', 'classifySignal', 'isTrustworthy', 'observations', 'probe', 'record', 'reset', 'status'];
  assert.deepEqual(Object.keys(facade).filter((name) => !['default', 'module.exports'].includes(name)).sort(), names);
  assert.equal(forge.health.status, facade.status);
});
