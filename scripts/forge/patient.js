'use strict';
// Runs gh for a caller with a time limit: the limit makes room for the wait that the shim is about to make, and a
// call that met a rate limit, or was still held when its time was up, is run once more. What decides is the engine;
// only the promise lives here.

const { addon, callOf, optionsOf, typed, usage, whole } = require('./options.js');

/** @typedef {typeof import('../../index.js').patient} Patient */

/** Runs gh patiently. @type {Patient['run']} */
exports.run = async (execGh, args, options) => {
  if (typeof execGh !== 'function') throw usage('run: execGh must be a function that runs gh');
  if (!Array.isArray(args) || args.some((arg) => typeof arg !== 'string')) {
    throw usage("run: args must be an array of strings, gh's argv without gh itself");
  }
  const given = optionsOf('run', options);
  const timeout = whole('timeout', given.timeout) || undefined;
  const caller = typed('caller', given.caller, 'string');
  const env = given.env ?? process.env;
  for (let attempts = 1; ; attempts += 1) {
    const retried = attempts > 1;
    const call = callOf(given);
    const room = JSON.parse(addon.patientAttempt(call, args, timeout, caller, retried));
    const started = performance.now();
    const ended = await settled(() => execGh(args, { ...given, timeout: room.timeout ?? undefined, env: { ...env, ...room.env } }));
    const outcome = { ...outcomeOf(ended), elapsed: Math.round(performance.now() - started), wait: room.wait };
    if (!retried && addon.patientAgain(call, args, outcome)) continue;
    if (ended.failed) throw marked(ended.value, { attempts, retried });
    return resultOf(ended.value, { attempts, retried });
  }
};

/**
 * What a runner came to, be it synchronous, asynchronous or throwing.
 * @param {() => unknown} runner
 */
async function settled(runner) {
  try {
    return { failed: false, value: /** @type {any} */ (await runner()) };
  } catch (error) {
    return { failed: true, value: /** @type {any} */ (error) };
  }
}

/**
 * How gh ended: from a result or an error of `child_process`, or of a runner that names its fields like one.
 * @param {{failed: boolean, value: any}} ended
 */
function outcomeOf({ failed, value }) {
  const of = value !== null && typeof value === 'object' ? value : {};
  const codes = [of.code, of.status, of.exitCode];
  const cause = [of.code, of.error?.code].find((code) => typeof code === 'string');
  const timedOut = of.timedOut === true || cause === 'ETIMEDOUT' || (of.killed === true && cause === undefined);
  const code = codes.find((one) => Number.isInteger(one));
  const isDone = !failed && !timedOut && cause === undefined && of.signal == null;
  const exit = code ?? (isDone && codes.every((one) => one == null) ? 0 : undefined);
  const stderr = of.stderr == null ? '' : typeof of.stderr === 'string' ? of.stderr : Buffer.from(of.stderr).toString();
  return { exit, stderr, timedOut, wasCutOff: of.signal === 'SIGKILL' };
}

/**
 * The runner's own result with what became of it; a bare value (the output that `execFileSync` returns) is `stdout`.
 * @param {any} value
 * @param {{attempts: number, retried: boolean}} told
 */
function resultOf(value, told) {
  if (value === undefined || value === null) return told;
  if (typeof value !== 'object' || value instanceof Uint8Array) return { stdout: value, ...told };
  // Its own class and its getters stay what they are; the runner may keep the object.
  const copy = Object.create(Object.getPrototypeOf(value), Object.getOwnPropertyDescriptors(value));
  return define(copy, told);
}

/**
 * The runner's own error, the same object.
 * @param {any} error
 * @param {{attempts: number, retried: boolean}} told
 */
function marked(error, told) {
  if (error !== null && typeof error === 'object' && Object.isExtensible(error)) define(error, told);
  return error;
}

/**
 * @param {any} object
 * @param {{attempts: number, retried: boolean}} told
 */
function define(object, told) {
  for (const [name, value] of Object.entries(told)) {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return object;
}
