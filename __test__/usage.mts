// How a TypeScript caller uses the modules. It is checked by tsc and by `types.test.js`; it never runs.
import { batch, budget, health, patient, type ForgeError } from '../index.js';
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


const read = batch.readIssues([1], { fields: ['state', 'closedAt'] });
const closed: string | null | undefined = read.issues.get(1)?.closedAt;
// @ts-expect-error the title was not asked for
read.issues.get(1)?.title;
const whole: batch.Issue | undefined = batch.readIssues([1], { fields: ['title', 'state', 'body', 'labels', 'closedAt'] }).issues.get(1);
// @ts-expect-error a field that does not exist
batch.readIssues([1], { fields: ['comments'] });
const run: Promise<number> = patient.run(async () => ({ code: 0 }), ['issue', 'list'], { timeout: 1 }).then((r) => r.code + r.attempts);
const text: Promise<string> = patient.run(() => 'text', ['issue', 'list']).then((r) => r.stdout);
const calls: number = budget.measure(['true']).calls;

export { calls, closed, run, text, whole };
export { code, isForgeError, signal, trusted, verdict };
