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
  const file = `bob-forge-${name}.schema.json`;
  return check(load(file), load(file), document, '$');
};

/** @param {string} file */
const load = (file) => JSON.parse(fs.readFileSync(path.join(__dirname, '../schemas', file), 'utf8'));

/** @type {(root: any, schema: any, value: any, at: string) => string[]} */
function check(root, schema, value, at) {
  const odd = Object.keys(schema).filter((key) => !known.has(key));
  if (odd.length) return [`${at}: the schema uses ${odd}`];
  if (schema.$ref) return refer(root, schema.$ref, value, at);
  if (schema.anyOf) {
    const tries = schema.anyOf.map((/** @type {any} */ s) => check(root, s, value, at));
    return tries.some((/** @type {string[]} */ t) => t.length === 0) ? [] : tries.flat();
  }
  if ('const' in schema) return value === schema.const ? [] : [`${at}: ${value} is not ${schema.const}`];
  if (schema.enum) return schema.enum.includes(value) ? [] : [`${at}: ${value} is none of ${schema.enum}`];
  if (!isA(value, schema.type)) return [`${at}: ${JSON.stringify(value)} is no ${schema.type}`];
  if (schema.minimum !== undefined && value < schema.minimum) return [`${at}: ${value} < ${schema.minimum}`];
  if (schema.type === 'array') {
    return value.flatMap((/** @type {any} */ item, /** @type {number} */ i) => check(root, schema.items, item, `${at}[${i}]`));
  }
  return schema.type === 'object' ? members(root, schema, value, at) : [];
}

/** A reference is into the same file, or to another file as a whole.
 * @type {(root: any, ref: string, value: any, at: string) => string[]} */
function refer(root, ref, value, at) {
  if (ref.startsWith('#/$defs/')) return check(root, root.$defs[ref.slice('#/$defs/'.length)], value, at);
  return check(load(ref), load(ref), value, at);
}

/** @type {(root: any, schema: any, value: any, at: string) => string[]} */
function members(root, schema, value, at) {
  const { properties = {}, required = [], additionalProperties: others = true } = schema;
  const missing = required.filter((/** @type {string} */ key) => !(key in value)).map((/** @type {string} */ key) => `${at}.${key}: missing`);
  const inside = Object.entries(value).flatMap(([key, member]) => {
    const rule = properties[key] ?? others;
    if (rule === false) return [`${at}.${key}: not in the schema`];
    return rule === true ? [] : check(root, rule, member, `${at}.${key}`);
  });
  return [...missing, ...inside];
}

/**
 * Copies of a document with one thing wrong in each: a member missing, of another type, or one too many, at
 * every depth.
 * @param {any} document
 * @returns {{what: string, document: any}[]}
 */
exports.mutants = (document) => {
  /** @type {{what: string, document: any}[]} */
  const mutants = [];
  const mutate = (/** @type {(string | number)[]} */ keys, /** @type {(holder: any, key: any) => void} */ change, /** @type {string} */ what) => {
    const copy = structuredClone({ $: document });
    const holder = keys.slice(0, -1).reduce((/** @type {any} */ value, key) => value[key], copy);
    change(holder, keys.at(-1));
    mutants.push({ what: `${keys.join('.')} ${what}`, document: copy.$ });
  };
  const walk = (/** @type {any} */ value, /** @type {(string | number)[]} */ keys) => {
    mutate(keys, (holder, key) => { holder[key] = typeof value === 'number' ? 'text' : 1.5; }, 'of another type');
    if (value === null || typeof value !== 'object') return;
    if (!Array.isArray(value)) mutate([...keys, 'nobody knows this'], (holder, key) => { holder[key] = 1; }, 'too many');
    for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) walk(value[key], [...keys, key]);
  };
  walk(document, ['$']);
  return mutants;
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
