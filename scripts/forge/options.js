'use strict';
// What every module's functions take besides their own arguments (env, cwd, now), and what is said when an
// argument does not fit.

const addon = require('./addon.js');

/** @type {string[]} */
const settingNames = addon.settingNames();

/** @typedef {{env?: NodeJS.ProcessEnv, cwd?: string, now?: number}} CallOptions */

/**
 * An argument that does not fit.
 * @param {string} message
 * @returns {TypeError & {code: string}}
 */
function usage(message) {
  return Object.assign(new TypeError(message), { code: 'EFORGE_USAGE' });
}

/**
 * The options of a function; none are an empty object.
 * @template {object} T
 * @param {string} name the function
 * @param {T | undefined} options
 * @returns {T}
 */
function optionsOf(name, options) {
  if (options === undefined) return /** @type {T} */ ({});
  if (options === null || typeof options !== 'object') throw usage(`${name}: options must be an object`);
  return options;
}

/**
 * A whole number that is not negative; undefined stays undefined.
 * @param {string} what
 * @param {unknown} value
 * @returns {number | undefined}
 */
function whole(what, value) {
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !(value >= 0) || value > Number.MAX_SAFE_INTEGER) {
    throw usage(`${what} must be a number that is not negative, not ${show(value)}`);
  }
  return Math.floor(value);
}

/**
 * A value of one type; undefined stays undefined.
 * @param {string} what
 * @param {unknown} value
 * @param {'string' | 'boolean'} type
 * @returns {any}
 */
function typed(what, value, type) {
  if (value !== undefined && typeof value !== type) {
    throw usage(`${what} must be a ${type}, not ${show(value)}`);
  }
  return value;
}

/**
 * Where and when a function is called, with the variables the engine reads.
 * @param {CallOptions} options
 */
function callOf(options) {
  const given = environment(options);
  /** @type {Record<string, string>} */
  const env = {};
  for (const name of settingNames) {
    const value = given[name];
    if (value !== undefined) env[name] = variable(name, value);
  }
  return { env, ...place(options) };
}

/**
 * The same with the whole environment, for a function that may start gh.
 * @param {CallOptions} options
 */
function callWithEnvironmentOf(options) {
  /** @type {Record<string, string>} */
  const env = {};
  for (const [name, value] of Object.entries(environment(options))) {
    if (value !== undefined) env[name] = variable(name, value);
  }
  return { env, ...place(options) };
}

/** @param {CallOptions} options */
function environment(options) {
  const env = options.env === undefined ? process.env : options.env;
  if (env === null || typeof env !== 'object') throw usage(`env must be an object, not ${show(env)}`);
  return env;
}

/** @param {CallOptions} options */
function place(options) {
  return { cwd: typed('cwd', options.cwd, 'string') ?? folder(), now: whole('now', options.now) };
}

/** The working directory; a deleted one is none. */
function folder() {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
}

/** @param {unknown} value */
function show(value) {
  if (typeof value === 'string') return JSON.stringify(value);
  // Not by its own words: an object may have none, and an array has a word for each of its elements.
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'function' ? 'a function' : String(value);
}

/**
 * A variable's value as a child would get it.
 * @param {string} name
 * @param {unknown} value
 */
function variable(name, value) {
  if ((typeof value === 'object' && value !== null) || typeof value === 'function' || typeof value === 'symbol') {
    throw usage(`env.${name} must be a string, not ${show(value)}`);
  }
  return String(value);
}

module.exports = { addon, callOf, callWithEnvironmentOf, optionsOf, show, typed, usage, whole };
