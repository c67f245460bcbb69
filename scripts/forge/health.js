'use strict';
// May an empty result be believed? One signal, read from the calls that were made (#1748).

const { addon, callOf, callWithEnvironmentOf, optionsOf, show, typed, usage, whole } = require('./options.js');

/** @typedef {typeof import('../../index.js').health} Health */

const names = addon.healthNames();

/** The states, in the order of the specification's table. @type {Health['STATES']} */
exports.STATES = Object.freeze(names.states);

/** The signals, in the order of the specification's table. @type {Health['SIGNALS']} */
exports.SIGNALS = Object.freeze(names.signals);

/** Each state's exit code. @type {Health['EXIT_CODES']} */
exports.EXIT_CODES = Object.freeze(JSON.parse(names.exitCodes));

/** May an empty result be believed? Asks the forge once when there is no evidence. @type {Health['isTrustworthy']} */
exports.isTrustworthy = (options) => {
  const given = optionsOf('isTrustworthy', options);
  const wanted = wantedOf(given);
  const state = addon.healthKnownState(callOf(given), wanted);
  return (state ?? asked(given, wanted).state) === 'operational';
};

/** The verdict with its evidence. Asks the forge once when there is none. @type {Health['status']} */
exports.status = (options) => {
  const given = optionsOf('status', options);
  const wanted = wantedOf(given);
  const known = addon.healthKnown(callOf(given), wanted);
  return known === null ? asked(given, wanted) : JSON.parse(known);
};

/** Judges observations: pure, the same in gives the same out. @type {Health['classify']} */
exports.classify = (observations, options) => {
  if (!Array.isArray(observations)) throw usage('classify: observations must be an array');
  const given = optionsOf('classify', options);
  const [now, window] = [whole('now', given.now), whole('window', given.window) ?? 300];
  const outcomes = observations.map((o, i) => outcomeOf(o, `observations[${i}]`));
  return JSON.parse(addon.healthClassify(JSON.stringify(outcomes), now, window));
};

/** The signal of one finished call: pure. @type {Health['classifySignal']} */
exports.classifySignal = (exit, said, argv) => {
  // A copy has no holes: what is missing is seen to be no string.
  const [stderr, args] = [said ?? '', Array.isArray(argv) ? [...argv] : (argv ?? [])];
  if (exit !== null && !isExitCode(exit)) {
    throw usage(`classifySignal: exit must be an exit code, or null for a killed call, not ${show(exit)}`);
  }
  if (typeof stderr !== 'string' && !(stderr instanceof Uint8Array)) {
    throw usage('classifySignal: stderr must be a string or a Buffer');
  }
  if (!Array.isArray(args) || args.some((arg) => typeof arg !== 'string')) {
    throw usage("classifySignal: args must be an array of strings, gh's argv without gh itself");
  }
  const text = typeof stderr === 'string' ? stderr : Buffer.from(stderr).toString();
  return addon.healthClassifySignal(exit, text, args);
};

/** Records a call that went past the shim, and returns its observation. @type {Health['record']} */
exports.record = (report) => {
  if (report === null || typeof report !== 'object') throw usage('record: needs an object with rc');
  if (!isExitCode(report.rc)) throw usage(`record: rc must be gh's exit code, not ${show(report.rc)}`);
  const { rc, signal } = report;
  const ms = whole('ms', report.ms) ?? 0;
  if (signal !== undefined) signalOf('signal', signal);
  const sub = typed('sub', report.sub, 'string');
  return JSON.parse(addon.healthRecord(callOf(report), { rc, ms, signal, sub }));
};

/** The raw evidence inside the window, oldest first. @type {Health['observations']} */
exports.observations = (options) => {
  const given = optionsOf('observations', options);
  return JSON.parse(addon.healthObservations(callOf(given), whole('window', given.window))).observations;
};

/** Forgets all evidence. @type {Health['reset']} */
exports.reset = (options) => addon.healthReset(callOf(optionsOf('reset', options)));

/** Asks the forge now, records the outcome and returns its observation. @type {Health['probe']} */
exports.probe = (options) => JSON.parse(addon.healthProbe(callWithEnvironmentOf(optionsOf('probe', options))));

/** @param {import('../../index.js').health.StatusOptions} options */
function wantedOf(options) {
  return {
    probe: typed('probe', options.probe, 'boolean') ?? true,
    ttl: whole('ttl', options.ttl),
    window: whole('window', options.window),
  };
}

/**
 * A probe has to be started, and gh gets the whole environment: handed over only now.
 * @param {import('../../index.js').health.StatusOptions} options
 * @param {ReturnType<typeof wantedOf>} wanted
 */
function asked(options, wanted) {
  return JSON.parse(addon.healthStatus(callWithEnvironmentOf(options), wanted));
}

/**
 * @param {unknown} observation
 * @param {string} what
 */
function outcomeOf(observation, what) {
  if (observation === null || typeof observation !== 'object') throw usage(`${what} must be an object`);
  const { epoch, signal } = /** @type {{epoch?: unknown, signal?: unknown}} */ (observation);
  return [whole(`${what}.epoch`, epoch) ?? null, signalOf(`${what}.signal`, signal)];
}

/** @param {unknown} value */
function isExitCode(value) {
  return typeof value === 'number' && (value | 0) === value;
}

/**
 * @param {string} what
 * @param {unknown} signal
 */
function signalOf(what, signal) {
  if (names.signals.includes(signal)) return signal;
  throw usage(`${what} must be one of ${names.signals.join(', ')}, not ${show(signal)}`);
}

if (require.main === module) require('./main.js')('health');
