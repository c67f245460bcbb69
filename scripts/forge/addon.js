'use strict';
// Finds and loads the compiled addon, the same engine that the `gh` shim and the `forge` command are.

const path = require('node:path');

const triple = `${process.platform}-${process.arch}`;
const override = process.env.FORGE_HEALTH_ADDON;
const places = override
  ? [path.resolve(override)]
  : [
      path.join(__dirname, 'forge.node'), // deployed
      path.join(__dirname, '../../target/deploy/forge.node'), // built here
      `forge-health-${triple}`, // installed from a package
    ];

/** @returns {any} */
function load() {
  const reasons = [];
  for (const place of places) {
    try {
      return require(place);
    } catch (e) {
      const { code, message } = /** @type {NodeJS.ErrnoException} */ (e);
      reasons.push(`${place}: ${code === 'MODULE_NOT_FOUND' ? 'not found' : message.split('\n')[0]}`);
    }
  }
  const what = `cannot load the forge addon for ${triple} (${reasons.join('; ')})`;
  const hint = override ? 'FORGE_HEALTH_ADDON names it' : 'build it with `make build`';
  throw Object.assign(new Error(`${what}; ${hint}`), { code: 'EFORGE_NO_ADDON' });
}

module.exports = load();
