'use strict';
// A module run as a program (`node scripts/forge/health.js status`) is the `forge` command itself.

const addon = require('./addon.js');

/**
 * Runs `forge NOUN …` with this process's arguments.
 * @param {string} noun
 */
module.exports = function main(noun) {
  // A reader that went away (`… | head`) has what it wanted; the answer is the exit code.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const argv = ['forge', noun, ...process.argv.slice(2)];
  const { stdout, stderr, code, signal } = addon.cli(argv, { ...process.env }, process.cwd());
  process.stderr.write(stderr);
  process.stdout.write(stdout);
  process.exitCode = code;
  // A measured command was killed: end as it did, once everything is written.
  if (signal) process.stdout.write('', () => process.kill(process.pid, signal));
};
