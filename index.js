'use strict';
// Forge Health's modules. Each can also be required by itself: `forge-health/scripts/forge/health.js`.

/** @type {typeof import('./index.js').health} */
exports.health = require('./scripts/forge/health.js');
/** @type {typeof import('./index.js').batch} */
exports.batch = require('./scripts/forge/batch.js');
/** @type {typeof import('./index.js').cache} */
exports.cache = require('./scripts/forge/cache.js');
/** @type {typeof import('./index.js').budget} */
exports.budget = require('./scripts/forge/budget.js');
/** @type {typeof import('./index.js').patient} */
exports.patient = require('./scripts/forge/patient.js');
/** @type {typeof import('./index.js').queue} */
exports.queue = require('./scripts/forge/queue.js');
