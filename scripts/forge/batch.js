'use strict';
// Many issues in few calls: up to 40 in one GraphQL query, in the shape that `gh issue view --json` gives.

const { addon, callWithEnvironmentOf, optionsOf, show, typed, usage, whole } = require('./options.js');

/** @typedef {typeof import('../../index.js').batch} Batch */

/** @type {string[]} */
const fieldNames = addon.batchFields();
/** @type {number} */
const maxNumber = addon.batchMaxNumber();

/** Reads issues and pull requests by their numbers. @type {Batch['readIssues']} */
exports.readIssues = (numbers, options) => {
  const given = optionsOf('readIssues', options);
  const wanted = {
    numbers: numbersOf(numbers),
    fields: fieldsOf(given.fields),
    repo: typed('repo', given.repo, 'string'),
    gh: typed('gh', given.gh, 'string'),
    timeout: whole('timeout', given.timeout),
  };
  const { issues, missing, unread, cached } = JSON.parse(addon.batchReadIssues(callWithEnvironmentOf(given), wanted));
  const read = { issues: new Map(issues), missing, unread };
  return cached.length ? { ...read, cached } : read;
};

/** @param {unknown} numbers */
function numbersOf(numbers) {
  if (!Array.isArray(numbers)) throw usage(`readIssues: numbers must be an array, not ${show(numbers)}`);
  // A loop by index: a hole in the array is no number either.
  for (let i = 0; i < numbers.length; i += 1) {
    const number = numbers[i];
    if (!Number.isInteger(number) || number < 1 || number > maxNumber) {
      throw usage(`readIssues: numbers[${i}] must be an issue number, not ${show(number)}`);
    }
  }
  return numbers;
}

/** @param {unknown} fields */
function fieldsOf(fields) {
  if (fields === undefined) return undefined;
  if (!Array.isArray(fields)) throw usage(`readIssues: fields must be an array, not ${show(fields)}`);
  // The number, and whether it is a pull request, are always there.
  const asked = fields.filter((field) => field !== 'number' && field !== 'isPullRequest');
  const unknown = asked.find((field) => !fieldNames.includes(field));
  if (unknown !== undefined) {
    throw usage(`readIssues: there is no field ${show(unknown)}; there are ${fieldNames.join(', ')}`);
  }
  return [...new Set(asked)];
}
