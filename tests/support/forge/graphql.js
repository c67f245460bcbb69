'use strict';
// GraphQL as GitHub answers it: GitHub's published schema, executed over the forge's memory. More tolerant than a
// strict server: what the schema does not know yet is left out of the answer instead of refused, and a non-null
// field nobody set has a plain default.

const fs = require('node:fs');
const path = require('node:path');
const g = require('graphql');
const resolvers = require('./resolvers');
const mutations = require('./mutations');
const { ForgeError } = require('./state');

const FIXED_DATE = '2020-01-01T00:00:00Z';
const DEFAULTS = {
  Int: 0, Float: 0, Boolean: false, BigInt: '0', DateTime: FIXED_DATE, PreciseDateTime: FIXED_DATE, GitTimestamp: FIXED_DATE, Date: '2020-01-01',
};

let schema;

/** GitHub's public schema, with the few newer fields of `newer.graphql`; built once. */
function githubSchema() {
  if (!schema) {
    const sdl = [publishedSchema(), path.join(__dirname, 'newer.graphql')].map((file) => fs.readFileSync(file, 'utf8')).join('\n');
    schema = g.buildSchema(sdl, { assumeValid: true, assumeValidSDL: true });
  }
  return schema;
}

/** The schema's own file: the package exports only a module that also parses five megabytes of JSON. */
function publishedSchema() {
  const file = module.paths.map((dir) => path.join(dir, '@octokit', 'graphql-schema', 'schema.graphql')).find((one) => fs.existsSync(one));
  if (!file) throw new Error("@octokit/graphql-schema is not installed: run 'npm ci'");
  return file;
}

/** What a GraphQL body asks: its document, operation, name and whether it writes; null when it cannot be parsed. */
function inspect(body) {
  try {
    const document = g.parse(body.query);
    const operations = document.definitions.filter((one) => one.kind === 'OperationDefinition');
    const operation = operations.find((one) => one.name?.value === body.operationName) ?? operations[0];
    return { document, operation, name: operation.name?.value ?? rootFields(operation)[0], writes: operation.operation === 'mutation' };
  } catch {
    return null;
  }
}

const rootFields = (operation) => operation.selectionSet.selections.map((one) => one.name?.value).filter(Boolean);

/** Executes `body` (`{query, variables}`) over `state` and answers the reply body `{data, errors?}`. */
function execute(state, quota, body) {
  let document;
  try {
    document = g.parse(String(body.query ?? ''));
  } catch (error) {
    return { errors: [{ message: `Parse error: ${error.message}`, locations: error.locations }] };
  }
  const unknown = unknownRoot(document);
  if (unknown) return unknown;
  const known = withoutUnknownVariables(document);
  const result = g.executeSync({
    schema: githubSchema(),
    document: known,
    rootValue: { ...resolvers.root(state), ...mutations.root(state) },
    contextValue: { quota },
    variableValues: knownVariables(known, body.variables ?? {}),
    operationName: body.operationName || undefined,
    fieldResolver: fieldOrDefault,
    typeResolver: (value, _context, _info, type) => value.__typename ?? firstPossible(type),
  });
  const reply = {};
  if (result.data !== undefined) reply.data = result.data;
  if (result.errors) reply.errors = result.errors.map(githubError);
  return reply;
}

/** A field's own value, a function called with its arguments, or else what its type says of an unset field. */
function fieldOrDefault(source, args, context, info) {
  let value = source?.[info.fieldName];
  if (typeof value === 'function') value = value(args, context, info);
  if (value !== undefined) return value;
  if (info.parentType.name === 'Mutation') throw new ForgeError(`the forge has no mutation '${info.fieldName}'`);
  return g.isNonNullType(info.returnType) ? unset(info.returnType.ofType) : null;
}

function unset(type) {
  if (g.isListType(type)) return [];
  if (g.isEnumType(type)) return type.getValues()[0].value;
  if (g.isScalarType(type)) return DEFAULTS[type.name] ?? '';
  if (/Connection$/.test(type.name)) return { nodes: [], edges: [] };
  return g.isAbstractType(type) ? { __typename: firstPossible(type) } : {};
}

const firstPossible = (type) => githubSchema().getPossibleTypes(type)[0].name;

/** GitHub's own words for a root field that does not exist; deeper ones are only left out. */
function unknownRoot(document) {
  for (const operation of document.definitions.filter((one) => one.kind === 'OperationDefinition')) {
    const type = githubSchema().getRootType(operation.operation);
    for (const field of rootFields(operation)) {
      if (field.startsWith('__') || type.getFields()[field]) continue;
      const errors = [{ path: [operation.operation, field], message: `Field '${field}' doesn't exist on type '${type.name}'` }];
      errors[0].extensions = { code: 'undefinedField', typeName: type.name, fieldName: field };
      return { errors };
    }
  }
  return null;
}

const namedType = (node) => (node.kind === 'NamedType' ? node.name.value : namedType(node.type));

/** Drops variable definitions of a type the schema does not have; their uses then count as absent. */
function withoutUnknownVariables(document) {
  return g.visit(document, {
    VariableDefinition: (node) => (githubSchema().getType(namedType(node.type)) ? undefined : null),
  });
}

/** The variables without the input fields the schema does not have. */
function knownVariables(document, variables) {
  const known = { ...variables };
  for (const operation of document.definitions.filter((one) => one.kind === 'OperationDefinition')) {
    for (const definition of operation.variableDefinitions ?? []) {
      const name = definition.variable.name.value;
      if (name in known) known[name] = knownInput(g.typeFromAST(githubSchema(), definition.type), known[name]);
    }
  }
  return known;
}

function knownInput(type, value) {
  const bare = g.getNullableType(type);
  if (Array.isArray(value) && g.isListType(bare)) return value.map((one) => knownInput(bare.ofType, one));
  if (!g.isInputObjectType(bare) || value === null || typeof value !== 'object') return value;
  const fields = bare.getFields();
  const kept = {};
  for (const [name, one] of Object.entries(value)) if (fields[name]) kept[name] = knownInput(fields[name].type, one);
  return kept;
}

function githubError(error) {
  const reply = { message: error.message };
  if (error.originalError instanceof ForgeError) reply.type = error.originalError.type;
  if (error.path) reply.path = error.path;
  if (error.locations) reply.locations = error.locations;
  return reply;
}

module.exports = { execute, inspect, githubSchema };
