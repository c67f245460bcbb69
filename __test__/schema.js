'use strict';
// Holds a document to one of the published schemas: the part of JSON Schema that they use, and nothing of a
// schema is passed over in silence.

const fs = require('node:fs');
const path = require('node:path');

const known = new Set([
  '$schema', '$defs', '$ref', 'title', 'description', 'type', 'additionalProperties', 'required', 'properties',
  'items', 'enum', 'const', 'anyOf', 'minimum',
]);

/**
 * What does not fit, as paths and reasons; nothing for a document that fits.
 * @param {string} name as in `quota-1`
 * @param {unknown} document
 * @returns {string[]}
 */
exports.faults = (name, document) => {
  const file = path.join(__dirname, `../schemas/bob-forge-${name}.schema.json`);
  const root = JSON.parse(fs.readFileSync(file, 'utf8'));
  /** @type {(schema: any, value: any, at: string) => string[]} */
  const check = (schema, value, at) => {
    const odd = Object.keys(schema).filter((key) => !known.has(key));
    if (odd.length) return [`${at}: the schema uses ${odd}`];
    if (schema.$ref) return check(root.$defs[schema.$ref.replace('#/$defs/', '')], value, at);
    if (schema.anyOf) {
      const tries = schema.anyOf.map((/** @type {any} */ s) => check(s, value, at));
      return tries.some((/** @type {string[]} */ t) => t.length === 0) ? [] : tries.flat();
    }
    if ('const' in schema) return value === schema.const ? [] : [`${at}: ${value} is not ${schema.const}`];
    if (schema.enum) return schema.enum.includes(value) ? [] : [`${at}: ${value} is none of ${schema.enum}`];
    if (!isA(value, schema.type)) return [`${at}: ${JSON.stringify(value)} is no ${schema.type}`];
    if (schema.minimum !== undefined && value < schema.minimum) return [`${at}: ${value} < ${schema.minimum}`];
    if (schema.type === 'array') {
      return value.flatMap((/** @type {any} */ item, /** @type {number} */ i) => check(schema.items, item, `${at}[${i}]`));
    }
    return schema.type === 'object' ? members(schema, value, at) : [];
  };
  /** @type {(schema: any, value: any, at: string) => string[]} */
  const members = (schema, value, at) => {
    const { properties = {}, required = [], additionalProperties: others = true } = schema;
    const missing = required.filter((/** @type {string} */ key) => !(key in value)).map((/** @type {string} */ key) => `${at}.${key}: missing`);
    const inside = Object.entries(value).flatMap(([key, member]) => {
      const rule = properties[key] ?? others;
      if (rule === false) return [`${at}.${key}: not in the schema`];
      return rule === true ? [] : check(rule, member, `${at}.${key}`);
    });
    return [...missing, ...inside];
  };
  return check(root, document, '$');
};

/** @param {any} value @param {string} type */
function isA(value, type) {
  switch (type) {
    case 'null': return value === null;
    case 'array': return Array.isArray(value);
    case 'object': return value !== null && typeof value === 'object' && !Array.isArray(value);
    case 'integer': return Number.isInteger(value);
    default: return typeof value === type;
  }
}
