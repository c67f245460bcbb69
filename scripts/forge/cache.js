'use strict';
// What reads get when the forge cannot be read: the last answers of this project (#1749).

const { addon, callOf, optionsOf, show, usage } = require('./options.js');

/** @typedef {typeof import('../../index.js').cache} Cache */

/** What this project's cache holds, and how old it is. @type {Cache['status']} */
exports.status = (options) => JSON.parse(addon.cacheStatus(callOf(optionsOf('status', options))));

/** Drops every answer of this project; costs a re-fetch, nothing more. @type {Cache['clear']} */
exports.clear = (options) => addon.cacheClear(callOf(optionsOf('clear', options)));

/** What a failing `gh` with these arguments would be served now; null for nothing. @type {Cache['lookup']} */
exports.lookup = (args, options) => {
  const given = optionsOf('lookup', options);
  return addon.cacheLookup(callOf(given), wordsOf('lookup', args));
};

/** Stores the answer of a call that went past the shim. @type {Cache['store']} */
exports.store = (args, bytes, options) => {
  const given = optionsOf('store', options);
  if (typeof bytes !== 'string' && !(bytes instanceof Uint8Array)) {
    throw usage(`store: bytes must be a string or a Buffer, not ${show(bytes)}`);
  }
  const answer = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
  return addon.cacheStore(callOf(given), wordsOf('store', args), answer);
};

/** Whether these arguments are one of the reads that are cached. @type {Cache['isCacheable']} */
exports.isCacheable = (args, options) => {
  const given = optionsOf('isCacheable', options);
  return addon.cacheIsCacheable(callOf(given), wordsOf('isCacheable', args));
};

/** The name of the question that these arguments ask here; null for one that is not cached. @type {Cache['keyFor']} */
exports.keyFor = (args, options) => {
  const given = optionsOf('keyFor', options);
  return addon.cacheKeyFor(callOf(given), wordsOf('keyFor', args));
};

/**
 * @param {string} name the function
 * @param {unknown} args
 */
function wordsOf(name, args) {
  if (Array.isArray(args) && args.every((arg) => typeof arg === 'string')) return args;
  throw usage(`${name}: args must be an array of strings, gh's argv without gh itself`);
}

if (require.main === module) require('./main.js')('cache');
