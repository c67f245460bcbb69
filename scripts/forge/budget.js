'use strict';
// GitHub's quota: what is left of it, who spends it, and what the gate would do (#3190, #3978).

const { addon, callOf, callWithEnvironmentOf, optionsOf, typed, usage } = require('./options.js');

/** @typedef {typeof import('../../index.js').budget} Budget */

/** The whole report, `bob-forge-quota/1`; never asks the forge. @type {Budget['document']} */
exports.document = (options) => JSON.parse(addon.budgetDocument(callOf(optionsOf('document', options))));

/** The form that a fleet snapshot carries a machine. @type {Budget['compact']} */
exports.compact = (options) => JSON.parse(addon.budgetCompact(callOf(optionsOf('compact', options))));

/** The line for `bob doctor`, and how loud it is. @type {Budget['doctorLine']} */
exports.doctorLine = (options) => addon.budgetDoctorLine(callOf(optionsOf('doctorLine', options)));

/** Reads the quota now (`gh api rate_limit`, free). @type {Budget['refresh']} */
exports.refresh = (options) => addon.budgetRefresh(callWithEnvironmentOf(optionsOf('refresh', options)));

/** The quota that a call spends; null for none. @type {Budget['resourceFor']} */
exports.resourceFor = (args, options) => {
  const given = optionsOf('resourceFor', options);
  return addon.budgetResourceFor(callOf(given), wordsOf('resourceFor', args));
};

/** What the gate would do with a call now, and why; nothing is taken. @type {Budget['plan']} */
exports.plan = (args, options) => {
  const given = optionsOf('plan', options);
  return JSON.parse(addon.budgetPlan(callOf(given), wordsOf('plan', args)));
};

/** Cuts every log to its bound; how many lines each has lost, by its name. @type {Budget['trim']} */
exports.trim = (options) => JSON.parse(addon.budgetTrim(callOf(optionsOf('trim', options)))).removed;

/** Runs a command with a recorder in front of gh: its calls, and the token's spend meanwhile. @type {Budget['measure']} */
exports.measure = (command, options) => {
  const given = optionsOf('measure', options);
  if (!Array.isArray(command) || !command.length || command.some((word) => typeof word !== 'string')) {
    throw usage('measure: command must be an array of strings, a program and its arguments');
  }
  const json = typed('json', given.json, 'boolean') ?? false;
  return JSON.parse(addon.budgetMeasure(callWithEnvironmentOf(given), command, json));
};

/**
 * @param {string} name the function
 * @param {unknown} args
 */
function wordsOf(name, args) {
  if (Array.isArray(args) && args.every((arg) => typeof arg === 'string')) return args;
  throw usage(`${name}: args must be an array of strings, gh's argv without gh itself`);
}

if (require.main === module) require('./main.js')('budget');
