// How a TypeScript caller uses the modules. It is checked by tsc and by `types.test.js`; it never runs.
import { health, type ForgeError } from '../index.js';
import { isTrustworthy, type Status } from '../scripts/forge/health.js';

const status: Status = health.status({ probe: false, ttl: 60, window: 300, now: 1, env: {}, cwd: '/' });
const code: number = health.EXIT_CODES[status.state];
const verdict: health.Verdict = health.classify(health.observations(), { now: 1 });
const signal: health.Signal = health.classifySignal(null, Buffer.from(''), ['issue', 'list']);
const trusted: boolean = isTrustworthy();
const isForgeError = (e: unknown): e is ForgeError => e instanceof Error && 'code' in e;

// @ts-expect-error a signal that does not exist
health.record({ rc: 1, signal: 'splendid' });
// @ts-expect-error rc is needed
health.record({ ms: 1 });
// @ts-expect-error numbers are numbers
health.status({ ttl: '60' });

export { code, isForgeError, signal, trusted, verdict };
