#!/usr/bin/env node
'use strict';
// main.js serve --socket PATH [--repo OWNER/NAME]… [--log FILE] [--until-stdin-closes]
// main.js ctl SOCKET METHOD PATH [JSON|-]

const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const { parseArgs } = require('node:util');

const USAGE = `usage: main.js serve --socket PATH [--repo OWNER/NAME]... [--log FILE] [--until-stdin-closes]
       main.js ctl SOCKET METHOD PATH [JSON|-]`;
const SOCKET_PATH_MAX = process.platform === 'darwin' ? 103 : 107;

function fail(message, code = 1) {
  process.stderr.write(`forge: ${message}\n`);
  process.exit(code);
}

async function serve(args) {
  const { values } = parseArgs({
    args,
    options: {
      socket: { type: 'string' }, repo: { type: 'string', multiple: true }, log: { type: 'string' }, 'until-stdin-closes': { type: 'boolean' },
    },
  });
  if (!values.socket) fail(USAGE, 2);
  if (Buffer.byteLength(values.socket) > SOCKET_PATH_MAX) fail(`the socket path is longer than ${SOCKET_PATH_MAX} bytes: ${values.socket}`);
  if (await answers(values.socket)) fail(`a server already listens on ${values.socket}`);
  fs.rmSync(values.socket, { force: true });

  const { Forge } = require('./server');
  const forge = new Forge({ repos: values.repo, logFile: values.log });
  const stop = () => {
    forge.close();
    fs.rmSync(values.socket, { force: true });
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, stop);
  if (values['until-stdin-closes']) process.stdin.resume().on('end', stop).on('error', stop);
  await forge.listen(values.socket);
  process.stdout.write(`listening ${values.socket}\n`);
}

/** Whether something accepts connections on this socket. */
function answers(socket) {
  return new Promise((resolve) => {
    const probe = net.connect(socket, () => {
      probe.destroy();
      resolve(true);
    });
    probe.on('error', () => resolve(false));
  });
}

function ctl([socketPath, method, path, given]) {
  if (!socketPath || !method || !path) fail(USAGE, 2);
  const body = given === '-' ? fs.readFileSync(0, 'utf8') : given;
  const full = path.startsWith('/') ? path : `/_forge/${path}`;
  const request = http.request({ socketPath, method: method.toUpperCase(), path: full }, (res) => {
    let text = '';
    res.setEncoding('utf8').on('data', (chunk) => { text += chunk; }).on('end', () => {
      process.stdout.write(`${text}\n`);
      process.exitCode = res.statusCode < 400 ? 0 : 1;
    });
  });
  request.on('error', (error) => fail(error.message));
  request.end(body);
}

const [command, ...rest] = process.argv.slice(2);
if (command === 'serve') serve(rest).catch((error) => fail(error.message));
else if (command === 'ctl') ctl(rest);
else fail(USAGE, 2);
