'use strict';
// Writes that wait for the forge: what is queued, seeing it, and delivering it (#1750).

const { addon, callOf, callWithEnvironmentOf, optionsOf, show, typed, usage, whole } = require('./options.js');

/** @typedef {typeof import('../../index.js').queue} Queue */

/** Depth, oldest entry, unresolved handles, what was set aside and why. @type {Queue['status']} */
exports.status = (options) => JSON.parse(addon.queueStatus(callOf(optionsOf('status', options))));

/** The compact form, for a status line or a snapshot of many. @type {Queue['overview']} */
exports.overview = (options) => JSON.parse(addon.queueOverview(callOf(optionsOf('overview', options))));

/** What waits, in replay order. @type {Queue['list']} */
exports.list = (options) => {
  const given = optionsOf('list', options);
  return JSON.parse(addon.queueList(callOf(given), typed('all', given.all, 'boolean') ?? false));
};

/** One entry, body included. @type {Queue['show']} */
exports.show = (id, options) => JSON.parse(addon.queueShow(callOf(optionsOf('show', options)), idOf('show', id)));

/** Sets one entry aside; the rest stay queued. @type {Queue['drop']} */
exports.drop = (id, options) => JSON.parse(addon.queueDrop(callOf(optionsOf('drop', options)), idOf('drop', id)));

/** Removes every entry, and says how many. @type {Queue['clear']} */
exports.clear = (options) => addon.queueClear(callOf(optionsOf('clear', options)));

/** Queues a write. @type {Queue['enqueue']} */
exports.enqueue = (args, options) => {
  const given = optionsOf('enqueue', options);
  const body = given.body;
  if (body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array)) {
    throw usage(`enqueue: body must be a string or a Buffer, not ${show(body)}`);
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const signal = typed('signal', given.signal, 'string');
  return JSON.parse(addon.queueEnqueue(callWithEnvironmentOf(given), wordsOf('enqueue', args), bytes, signal));
};

/** Delivers what waits; without `apply`, says what it would deliver. @type {Queue['replay']} */
exports.replay = (options) => {
  const given = optionsOf('replay', options);
  const accept = given.accept ?? [];
  if (!Array.isArray(accept)) throw usage(`replay: accept must be an array, not ${show(accept)}`);
  return JSON.parse(addon.queueReplay(callWithEnvironmentOf(given), {
    apply: typed('apply', given.apply, 'boolean') ?? false,
    markedOnly: typed('markedOnly', given.markedOnly, 'boolean') ?? false,
    batch: whole('batch', given.batch),
    accept: accept.map((seq) => /** @type {number} */ (whole('accept', seq))),
  }));
};

/** The issue number that a handle stands for; null while its create has not landed. @type {Queue['resolve']} */
exports.resolve = (handle, options) => {
  if (typeof handle !== 'string') throw usage(`resolve: a handle is a string, not ${show(handle)}`);
  return addon.queueResolve(callOf(optionsOf('resolve', options)), handle);
};

/** Whether these arguments would be queued here when the forge cannot take them. @type {Queue['isQueueable']} */
exports.isQueueable = (args, options) => {
  const given = optionsOf('isQueueable', options);
  return addon.queueIsQueueable(callWithEnvironmentOf(given), wordsOf('isQueueable', args));
};

/**
 * @param {string} name the function
 * @param {unknown} args
 */
function wordsOf(name, args) {
  if (Array.isArray(args) && args.every((arg) => typeof arg === 'string')) return args;
  throw usage(`${name}: args must be an array of strings, gh's argv without gh itself`);
}

/**
 * @param {string} name the function
 * @param {unknown} id
 */
function idOf(name, id) {
  if (typeof id === 'string' || typeof id === 'number') return String(id);
  throw usage(`${name}: an entry is named by 3, '#3' or 'q000003', not ${show(id)}`);
}

if (require.main === module) require('./main.js')('queue');
