/**
 * Forge Health: whether the answers of `gh` can be believed, and what keeps a run going when they cannot.
 *
 * Every function is synchronous unless it says otherwise, throws an `Error` with a `code`
 * (see {@link ForgeError}) and never ends the process.
 */

/** What the functions throw. */
export interface ForgeError extends Error {
  /**
   * - `EFORGE_USAGE`: an argument does not fit (a `TypeError` where a look at the argument alone tells), or
   *   `env` names no state folder
   * - `EFORGE_STATE`: a file of the forge state cannot be read or written
   * - `EFORGE_NO_GH`: there is no real `gh` to ask with
   * - `EFORGE_BUSY`: another process is at it (a second replay, a drop of what is being sent)
   * - `EFORGE_NOT_QUEUED`: the queue does not carry this write; the message is the reason
   * - `EFORGE_QUEUE_FULL`: as many writes wait as may
   * - `EFORGE_NO_ADDON`: the compiled addon is missing (thrown by `require`)
   * - `GenericFailure`: a defect of the engine
   */
  code: 'EFORGE_USAGE' | 'EFORGE_STATE' | 'EFORGE_NO_GH' | 'EFORGE_BUSY' | 'EFORGE_NOT_QUEUED' | 'EFORGE_QUEUE_FULL' | 'EFORGE_NO_ADDON' | 'GenericFailure';
}

/** What every options object takes, so that nothing depends on hidden process state. */
export interface CallOptions {
  /** The environment. Default `process.env`. */
  env?: NodeJS.ProcessEnv;
  /** The working directory. Default `process.cwd()`. */
  cwd?: string;
}

/** May an empty result be believed? One signal, read from the calls that were made. */
export namespace health {
  /**
   * - `operational`: recent calls succeeded, empty means empty
   * - `degraded`: some calls failed; empty cannot be told from unread
   * - `unreachable`: calls are failing and none succeeded
   * - `unknown`: no evidence; absence of data is not a verdict
   */
  type State = 'operational' | 'degraded' | 'unreachable' | 'unknown';

  /** What one call's outcome says. Only `net`, `server`, `ratelimit` and `auth` move the verdict. */
  type Signal = 'ok' | 'net' | 'server' | 'ratelimit' | 'auth' | 'notfound' | 'other';

  /** A signal that is an availability failure. */
  type Cause = 'net' | 'server' | 'ratelimit' | 'auth';

  /** Why a verdict is what it is. */
  type Reason =
    | 'recent-calls-succeeded'
    | 'rate-limited'
    | 'auth-failures'
    | 'partial-failures'
    | 'network-failures'
    | 'all-calls-failing'
    | 'no-evidence'
    | 'no-gh';

  /** The evidence of a verdict: the newest ten calls inside the window that say something. */
  interface Sample {
    total: number;
    ok: number;
    /** `ok` and `notfound`: the forge answered. */
    answered: number;
    /** `net`, `server`, `ratelimit` and `auth` together. */
    failures: number;
    net: number;
    server: number;
    ratelimit: number;
    auth: number;
    notfound: number;
    /** In seconds. */
    window: number;
  }

  /** What observations say. */
  interface Verdict {
    state: State;
    reason: Reason;
    /** The failing signals, each once. */
    causes: Cause[];
    sample: Sample;
  }

  /** A verdict with where it comes from (`bob-forge-health/1`). */
  interface Status extends Verdict {
    schema: 'bob-forge-health/1';
    source: 'observations' | 'probe' | 'cache';
    /** When the verdict was made, in epoch seconds. */
    checkedAt: number;
    /** Seconds since then. */
    ageSeconds: number;
    /** Reads that the forge did not answer of late: a condition of its own, whatever the state. */
    cache: CachedReads;
    /** GitHub's quota, or null when nothing is known. It never changes the state. */
    quota: budget.Document | null;
  }

  /** Reads in the last hour that got a stored answer, or would have if it had not been too old. */
  interface CachedReads {
    /** How many were answered from a cache. */
    served: number;
    /** How many failed although an answer is stored, because it is past the staleness bound. */
    stale: number;
    /** When the last one was answered from a cache, in epoch seconds. */
    lastServedAt: number | null;
    /** How old that answer was. */
    lastAnswerAgeSeconds: number | null;
    /** Why the live call failed. */
    lastSignal: Cause | null;
    /** Its command and subcommand. */
    lastCommand: string | null;
    /** How far back was looked, in seconds. */
    window: number;
  }

  /** One recorded call; the fields are the columns of `observations.log`. */
  interface Observation {
    /** When the call ended, in epoch seconds. */
    epoch: number;
    /** gh's exit code (128 + N for a death by signal N). */
    exit: number;
    /** Latency in milliseconds. */
    ms: number;
    signal: Signal;
    /** Command and subcommand, as in `issue list`; never an operand. */
    subcommand: string;
    /** The quota the call spends: `graphql`, `core`, `search`, or `-`. */
    quota: string;
    /** 1 for a call that spends a quota, 0 for one that spends none. */
    cost: number;
    /** The folder the call was made from, plus `/kind` where the caller names itself. */
    caller: string;
    /** The first eight characters of the session's id, or `-`. */
    session: string;
  }

  /** The part of an observation that {@link classify} reads. */
  interface Outcome {
    /** In epoch seconds; one without it counts as just now. */
    epoch?: number;
    signal: Signal;
  }

  interface TimedOptions extends CallOptions {
    /** The time in epoch seconds. Default: the clock's. */
    now?: number;
  }

  interface StatusOptions extends TimedOptions {
    /** Ask the forge when there is no evidence. Default true. */
    probe?: boolean;
    /** Seconds a verdict is reused. Default `BOB_FORGE_TTL`, else 60. */
    ttl?: number;
    /** Seconds back that a call is evidence. Default `BOB_FORGE_WINDOW`, else 300. */
    window?: number;
  }

  interface ClassifyOptions {
    /** The time in epoch seconds. Default: the newest observation's. */
    now?: number;
    /** Seconds back that a call is evidence. Default 300. */
    window?: number;
  }

  interface ObservationsOptions extends TimedOptions {
    /** Seconds back. Default `BOB_FORGE_WINDOW`, else 300. */
    window?: number;
  }

  interface Report extends TimedOptions {
    /** gh's exit code. */
    rc: number;
    /** Latency in milliseconds. Default 0. */
    ms?: number;
    /** The outcome. Default: `ok` for exit 0, else `other`. */
    signal?: Signal;
    /** Command and subcommand, as in `issue list`. Default `-`. */
    sub?: string;
  }

  /** The states, in the order of the specification's table. */
  const STATES: readonly ['operational', 'degraded', 'unreachable', 'unknown'];

  /** The signals, in the order of the specification's table. */
  const SIGNALS: readonly ['ok', 'net', 'server', 'ratelimit', 'auth', 'notfound', 'other'];

  /** Each state's exit code in `bob forge health`. */
  const EXIT_CODES: Readonly<Record<State, number>>;

  /**
   * May an empty result be believed? True only when the state is `operational`. Asks the forge once (and
   * waits for it) when there is no evidence and `probe` is not false.
   */
  function isTrustworthy(options?: StatusOptions): boolean;

  /**
   * The verdict: the stored one while it holds, else from the calls inside the window, else from one probe
   * (`gh api rate_limit`). However many callers come at once, one probe is made.
   */
  function status(options?: StatusOptions): Status;

  /** Judges observations, in any order. Pure: the same observations always give the same verdict. */
  function classify(observations: readonly Outcome[], options?: ClassifyOptions): Verdict;

  /**
   * The signal of one finished `gh` call. Pure.
   * @param exit gh's exit code; null for a call that was killed
   * @param stderr what it wrote to stderr
   * @param args gh's argv without `gh` itself, where it is known
   */
  function classifySignal(
    exit: number | null,
    stderr?: string | Uint8Array | null,
    args?: readonly string[] | null,
  ): Signal;

  /** Records a call that went past the shim. Throws `EFORGE_STATE` when the log cannot be written. */
  function record(report: Report): Observation;

  /**
   * The raw evidence inside the window, oldest first, `other` among it. Throws `EFORGE_STATE` when the log
   * exists and cannot be read.
   */
  function observations(options?: ObservationsOptions): Observation[];

  /** Forgets all evidence, and the verdict derived from it. Throws `EFORGE_STATE` when a file stays. */
  function reset(options?: CallOptions): void;

  /** Asks the forge now, evidence or not, and records the outcome. Throws `EFORGE_NO_GH` without a gh. */
  function probe(options?: TimedOptions): Observation;
}

/** Many issues in few calls. */
export namespace batch {
  /** What can be asked of an issue besides its number. */
  type Field = 'title' | 'state' | 'body' | 'labels' | 'closedAt';

  interface Label {
    id: string;
    name: string;
    description: string;
    color: string;
  }

  /** An issue or pull request, in the shape that `gh issue view --json` gives. */
  interface Issue {
    number: number;
    title: string;
    /** `MERGED` is a pull request's alone. */
    state: 'OPEN' | 'CLOSED' | 'MERGED';
    body: string;
    /** All of them. */
    labels: Label[];
    /** An RFC 3339 time; null while it is open. */
    closedAt: string | null;
    isPullRequest: boolean;
  }

  /** Every number that was asked for is in exactly one of the three, once, in the order it was asked in. */
  interface Issues<F extends Field> {
    /** What was read, whole. */
    issues: Map<number, Pick<Issue, 'number' | 'isPullRequest' | F>>;
    /** Numbers that the forge says it has nothing for. */
    missing: number[];
    /** Numbers of which nothing is known: their call failed, was cut short or partly refused. Read them one by one. */
    unread: number[];
    /**
     * Only when there are any: those of `issues` that are last-known state, served from the shim's cache because
     * the live call failed. Only reads one by one can be.
     */
    cached?: number[];
  }

  interface ReadOptions<F extends Field> extends CallOptions {
    /** What is read of each. Default title, state, body and labels. */
    fields?: readonly (F | 'number' | 'isPullRequest')[];
    /** `[HOST/]OWNER/NAME`. Default: what gh picks. */
    repo?: string;
    /** The gh to run. Default: the first on PATH, which is the shim. */
    gh?: string;
    /**
     * Milliseconds that one call may take; the shim holds none for longer. Default: as long as the shim may
     * hold one for a reset and a backoff, and two minutes.
     */
    timeout?: number;
  }

  /**
   * Reads issues and pull requests, up to 40 in one call of gh; with `BOB_FORGE_BATCH=0` one a call. It waits
   * for the calls; what a shim says meanwhile (`[forge-budget] waiting …`) goes to standard error. No failure
   * of a call throws. Throws `EFORGE_USAGE` for what is no issue number (a whole number from 1 on).
   */
  function readIssues<F extends Field = 'title' | 'state' | 'body' | 'labels'>(
    numbers: readonly number[],
    options?: ReadOptions<F>,
  ): Issues<F>;
}

/**
 * The read cache: the last answers of this project's `issue list`, `issue view`, `search issues` and
 * `label list`, which the `gh` shim stores as they pass and serves when the forge cannot be read.
 *
 * An answer answers the exact argv, in the repository gh would use, on its host, shaped by the same
 * variables (`TZ`, colours), and for the same account. Outside a checkout there is no cache.
 */
export namespace cache {
  interface TimedOptions extends CallOptions {
    /** The time in epoch seconds. Default: the clock's. */
    now?: number;
  }

  /** What a project's cache holds (`bob-forge-cache/1`). */
  interface Status {
    schema: 'bob-forge-cache/1';
    /** The project's root; null outside a checkout. */
    project: string | null;
    /** False with `BOB_FORGE_CACHE=0`: nothing is stored and nothing served. */
    enabled: boolean;
    /** The staleness bound, `BOB_FORGE_CACHE_MAX_AGE`. */
    maxAgeSeconds: number;
    /** How many answers there are. */
    count: number;
    /** How many of them are past the bound. */
    stale: number;
    /** Files that are damaged or not this machine's; they are never served. */
    damaged: number;
    /** Bytes of all answers. */
    bytes: number;
    newestAgeSeconds: number | null;
    oldestAgeSeconds: number | null;
    /** The answers, newest first. */
    entries: Entry[];
  }

  /** One stored answer. */
  interface Entry {
    /** gh's argv. */
    args: string[];
    /** `host/owner/name` in lower case; null for a search. */
    repo: string | null;
    host: string;
    /** Variables that shaped it, as `NAME=value`; missing when there are none. */
    shape?: string[];
    bytes: number;
    /** When it was asked for, in epoch seconds. */
    storedAt: number;
    /** Null when the clock was set back since. */
    ageSeconds: number | null;
    /** Whether it is inside the bound. */
    fresh: boolean;
  }

  /** An answer that would be served. */
  interface Answer {
    /** The exact bytes that gh printed. */
    bytes: Buffer;
    ageSeconds: number;
    /** When it was asked for, in epoch seconds. */
    storedAt: number;
  }

  /** What this project's cache holds, and how old it is. Throws `EFORGE_STATE` when it cannot be read. */
  function status(options?: TimedOptions): Status;

  /**
   * Drops every answer of this project; costs a re-fetch, nothing more. Says how many answers that were and
   * how many bytes their files had. Throws `EFORGE_STATE` when the folder cannot be written.
   */
  function clear(options?: CallOptions): { entries: number; bytes: number };

  /**
   * What a failing `gh` with these arguments would be served now; null when that is nothing: never seen, past
   * the staleness bound, damaged, another account's, not cached at all.
   * @param args gh's argv without `gh` itself
   */
  function lookup(args: readonly string[], options?: TimedOptions): Answer | null;

  /**
   * Stores the answer of a call that went past the shim. False when it is not one that is kept: not one of the
   * four reads, the cache turned off, outside a checkout, 8 MiB and more, or empty where that may mean "not
   * answered" (`label list`, `search issues`). Throws `EFORGE_STATE` when the folder cannot be written.
   * @param args gh's argv without `gh` itself
   * @param bytes what gh printed on stdout when it ended with 0
   */
  function store(args: readonly string[], bytes: string | Uint8Array, options?: TimedOptions): boolean;

  /** Whether these arguments are one of the reads that are cached: an allowlist, by gh's own grammar. */
  function isCacheable(args: readonly string[], options?: CallOptions): boolean;

  /** The name of the question that these arguments ask here, 32 hexadecimal digits; null for one that is not cached. */
  function keyFor(args: readonly string[], options?: CallOptions): string | null;
}

/**
 * GitHub's quota: what is left of it, who spends it, who was made to wait, and what the gate would do. Only
 * `refresh` asks the forge.
 */
export namespace budget {
  type Quota = 'graphql' | 'core' | 'search';

  interface TimedOptions extends CallOptions {
    /** The time in epoch seconds. Default: the clock's. */
    now?: number;
  }

  /**
   * `ok`: at or above the pace line. `pacing`: under it, unattended calls are slowed. `waiting`: under the
   * floor, they wait. `reset`: the reset has passed since the read, the number is the last window's.
   */
  type State = 'ok' | 'pacing' | 'waiting' | 'reset';

  /** One quota as it was read. */
  interface Standing {
    limit: number;
    remaining: number;
    used: number;
    /** When the window ends, in epoch seconds. */
    resetAt: number;
    resetInSeconds: number;
    state: State;
    floor: number;
    pace: number;
    /** What the token spent in the last hour, on every machine; null where it is not measured. */
    spentLastHour: number | null;
  }

  /** Calls of one quota in the ledger's window. */
  interface Rate {
    /** The window in seconds. */
    window: number;
    count: number;
    /** How many of them were background calls. */
    background: number;
    /** The most there may be; 0 for no limit. */
    ceiling: number;
    /** How many a background caller may find there. */
    backgroundShare: number;
    /** Whether background calls were deferred or refused inside the window. */
    backgroundDeferred: boolean;
  }

  /** One caller's calls of the last hour. */
  interface Caller {
    caller: string;
    session: string | null;
    calls: number;
    /** What they spent at least. */
    cost: Record<Quota, number>;
    rateLimited: number;
  }

  interface Waits {
    count: number;
    seconds: number;
  }

  /** A rate-limited answer. */
  interface RateLimited {
    epoch: number;
    /** The same moment as an ISO 8601 time. */
    at: string;
    quota: string;
    subcommand: string;
    caller: string;
    session: string;
    limit: 'primary' | 'secondary';
  }

  /** The report that every surface shows. */
  interface Document {
    schema: 'bob-forge-quota/1';
    checkedAt: number;
    /** When the quotas were read, in epoch seconds. */
    fetchedAt: number | null;
    ageSeconds: number | null;
    quotas: Record<Quota, Standing | null>;
    rates: Record<Quota, Rate>;
    spentBy: { window: number; calls: number; callers: Caller[] };
    heldBack: {
      window: number;
      /** For a reset, or for a quota that a rate-limited answer has closed. */
      waits: Waits;
      /** Under the pace line. */
      paced: Waits;
      /** Before a retry. */
      retries: Waits;
      /** For room in the ledger's window. */
      holds: Waits;
      /** The same, background calls. */
      defers: Waits;
      /** Background calls that ended with 75. */
      refused: number;
      /** Calls whose bound was spent. */
      capped: number;
    };
    /** Of the last seven days. Every one is a defect: the budget exists to prevent it. */
    rateLimited: { window: number; count: number; target: 0; defect: boolean; last: RateLimited | null };
  }

  /** What a fleet snapshot carries a machine. */
  interface Compact {
    schema: 'bob-forge-quota-compact/1';
    fetchedAt: number | null;
    graphql: CompactQuota | null;
    core: CompactQuota | null;
    search: CompactQuota | null;
    callers: { caller: string; calls: number }[];
    rateLimited: number;
  }

  interface CompactQuota {
    remaining: number;
    limit: number;
    resetAt: number;
    state: State;
  }

  /** What the gate would do with a call now. */
  interface Plan {
    schema: 'bob-forge-plan/1';
    /** `give-up`: `BOB_FORGE_DEADLINE` comes before the wait is over. */
    action: 'run' | 'pace' | 'wait' | 'hold' | 'defer' | 'refuse' | 'give-up';
    /** For how long it would wait first. */
    seconds: number;
    quota: Quota | null;
    /** Command and subcommand. */
    command: string;
    /** The wait would be longer than a call may wait: it goes ahead. */
    capped: boolean;
    /** Why; null when nothing is in the way. */
    cause:
      | { kind: 'low'; remaining: number; line: number; resetAt: number }
      | { kind: 'closed'; until: number }
      | { kind: 'rate'; quota: Quota; count: number; bound: number; ceiling: number }
      | null;
  }

  /** The whole report. Trims the logs it reads. Throws `EFORGE_USAGE` without a state folder. */
  function document(options?: TimedOptions): Document;

  /** The form that a fleet snapshot carries a machine. Throws like {@link document}. */
  function compact(options?: TimedOptions): Compact;

  /** The one `forge quota:` line of a doctor. Throws like {@link document}. */
  function doctorLine(options?: TimedOptions): { level: 'INFO' | 'WARN'; text: string };

  /**
   * Reads the quota now (`gh api rate_limit`, which costs nothing) and waits for it. False when the forge did
   * not answer. Throws `EFORGE_NO_GH` without a gh, `EFORGE_STATE` when the answer cannot be kept.
   */
  function refresh(options?: TimedOptions): boolean;

  /**
   * The quota that a call spends on github.com; null for one that spends none there.
   * @param args gh's argv without `gh` itself
   */
  function resourceFor(args: readonly string[], options?: CallOptions): Quota | null;

  /**
   * What the gate would do with an unattended call now, and why. Nothing is taken and nothing is asked.
   * @param args gh's argv without `gh` itself
   */
  function plan(args: readonly string[], options?: TimedOptions): Plan;

  /** Cuts every log to its bound: how many lines each has lost, by its name. Throws `EFORGE_STATE`. */
  function trim(options?: CallOptions): Record<string, number>;

  interface MeasureOptions extends CallOptions {
    /** What the command prints goes to standard error, so that standard output stays free. Default false. */
    json?: boolean;
  }

  /** A command's calls and what the token spent meanwhile. */
  interface Measured {
    schema: 'bob-forge-measure/1';
    command: string[];
    /** Its exit code; null when a signal ended it. */
    exit: number | null;
    /** The signal's number, or null. */
    signal: number | null;
    wallMs: number;
    /** Its calls of gh, counted exactly. */
    calls: number;
    /** How often each of gh's commands was called; `-` for words that name none. */
    byCommand: Record<string, number>;
    byQuota: Record<Quota | 'none', number>;
    /** What the token spent between the two reads, other sessions' calls included; null where it is unknown. */
    points: Record<Quota, number | null>;
    quota: Record<'before' | 'after', Record<Quota, { limit: number; remaining: number; used: number; resetAt: number } | null>>;
  }

  /**
   * Runs a command for real and waits for it, with a recorder in front of gh on its PATH. Its streams are this
   * process's. Throws `EFORGE_USAGE` when it cannot be started, `EFORGE_NO_GH` without the compiled shim, which is
   * the recorder.
   * @param command the program and its arguments
   */
  function measure(command: readonly string[], options?: MeasureOptions): Measured;
}

/** Runs gh for a caller with a time limit, without undoing the shim's waits. */
export namespace patient {
  /** What a runner is given besides gh's argv: every option of {@link run}, and these. */
  interface RunnerOptions {
    /** Milliseconds: the caller's own limit, and the wait that the shim is about to make. */
    timeout?: number;
    /** The environment for gh, with `BOB_FORGE_CALLER` and `BOB_FORGE_DEADLINE`. */
    env: NodeJS.ProcessEnv;
    [option: string]: unknown;
  }

  /**
   * Runs gh. It may return or throw, resolve or reject. How gh ended is read from the result's or the error's
   * `code`, `status` or `exitCode`, `stderr`, `signal`, and `timedOut` or `killed`.
   */
  type Runner<R> = (args: string[], options: RunnerOptions) => R | PromiseLike<R>;

  /** What became of a call. */
  interface Told {
    /** How often it was run: 1 or 2. */
    attempts: number;
    /** It was run again. */
    retried: boolean;
  }

  interface RunOptions extends CallOptions {
    /** Milliseconds a call may take when nothing holds it. Without it the runner has no limit. */
    timeout?: number;
    /** What the caller calls itself (`brief`): recorded as `folder/caller`. */
    caller?: string;
    /** Anything else is handed to the runner. */
    [option: string]: unknown;
  }

  /** A runner's result as {@link run} gives it: output alone (what `execFileSync` returns) is `stdout`. */
  type Result<R> = (R extends string | Uint8Array ? { stdout: R } : R extends object ? R : {}) & Told;

  /**
   * Runs gh once, and once more when it met a rate limit, or when its time was up while the shim was holding it.
   * The second time there is room for a full backoff. A write that may have reached the forge, or that the queue
   * has taken over, is never run twice.
   *
   * Resolves with the runner's own result plus `attempts` and `retried`; rejects with the runner's own error, on
   * which they are set. Rejects with `EFORGE_USAGE` when an argument does not fit.
   */
  function run<R>(execGh: Runner<R>, args: string[], options?: RunOptions): Promise<Result<R>>;
}

/** Writes that wait for the forge: what is queued, seeing it, and delivering it. */
export namespace queue {
  /** Which write. */
  type Kind = 'create' | 'comment' | 'edit' | 'close' | 'reopen';

  /** What became of an entry. The last four do not arrive on their own; all but `dropped` need a person. */
  type EntryStatus = 'pending' | 'delivered' | 'skipped' | 'failed' | 'refused' | 'dropped';

  /** One queued write. Times are epoch seconds. */
  interface Entry {
    schema: 'bob-forge-queue/1';
    seq: number;
    /** `q000003` */
    id: string;
    kind: Kind;
    /** `host/owner/name` */
    repo: string;
    /** The issue's number or a handle; null for a create. */
    target: string | null;
    /** `BOB-Q3`, for a create. */
    handle: string | null;
    /** Equal writes have equal keys. */
    key: string;
    /** gh's arguments; the body is read from `body_file`. */
    argv: string[];
    body_file: string | null;
    enqueued_at: number;
    status: EntryStatus;
    reason: string | null;
    attempts: number;
    first_attempt_at: number | null;
    last_attempt_at: number | null;
    /** Its URL on the forge. */
    result: string | null;
    signal: string | null;
    /** The live call that failed, where there was one. */
    live: { started_ms: number; ended_ms: number; reach: 'nothing' | 'perhaps' | 'unknown' } | null;
    caller: string;
    session: string;
    seal: string;
    /** In words: `comment on #12`. */
    summary: string;
  }

  /** An entry that needs a person. */
  interface Problem {
    id: string;
    what: string;
    status: 'skipped' | 'failed' | 'refused';
    reason: string;
  }

  /** What waits, and what was set aside, counted apart. */
  interface Overview {
    depth: number;
    oldestAgeSeconds: number | null;
    pending: Partial<Record<Kind, number>>;
    setAside: Partial<Record<'skipped' | 'failed' | 'refused' | 'dropped', number>>;
    problems: Problem[];
    /** Handles whose create has not landed. */
    unresolved: string[];
    /** Numbers of writes that were cut short while they were queued. */
    incomplete: number[];
    lastReplay: { at: number; id: string; outcome: string; reason: string } | null;
    /** Whether automatic replay may deliver here. */
    marked: boolean;
    notes: string[];
    /** One line for a status line; null when there is nothing to say. */
    line: string | null;
    colour: 'yellow' | 'red' | null;
  }

  /** The whole status. */
  interface Status extends Overview {
    schema: 'bob-forge-queue-status/1';
    path: string;
    delivered: number;
    /** 0 when nothing is undelivered, else 3. */
    exitCode: 0 | 3;
  }

  /** What a replay came to. */
  interface Report {
    schema: 'bob-forge-replay/1';
    applied: boolean;
    rows: {
      seq: number;
      id: string;
      outcome: 'delivered' | 'skipped' | 'failed' | 'refused' | 'waiting' | 'pending';
      text: string;
    }[];
    delivered: number;
    skipped: number;
    failed: number;
    refused: number;
    pending: number;
    setAside: number;
    /** Why it stopped before its end. */
    stopped: string | null;
    note: string | null;
    exitCode: 0 | 3;
  }

  /** Depth, oldest entry, unresolved handles, what was set aside and why. */
  function status(options?: CallOptions & { now?: number }): Status;
  /** The compact form, for a status line or a snapshot of many. */
  function overview(options?: CallOptions & { now?: number }): Overview;
  /** What waits, in replay order; with `all`, what was delivered or set aside too. */
  function list(options?: CallOptions & { all?: boolean }): Entry[];
  /** One entry (`3`, `'#3'`, `'q000003'`), body included. */
  function show(id: number | string, options?: CallOptions): Entry & { body: string | null; sealed: boolean };
  /**
   * Sets one entry aside; its number is never given out again. `dependents` are the ids of the entries that wait
   * for the issue it would have made: replay skips them.
   */
  function drop(id: number | string, options?: CallOptions): Entry & { dependents: string[] };
  /** Removes every entry, and says how many. */
  function clear(options?: CallOptions): number;
  /**
   * Queues a write. `args` is gh's argv without `gh`; `body` stands for what it would read on stdin.
   * @throws `EFORGE_NOT_QUEUED` with the reason, `EFORGE_QUEUE_FULL` at the bound
   */
  function enqueue(
    args: string[],
    options?: CallOptions & { body?: string | Uint8Array; signal?: health.Signal; now?: number },
  ): Entry & { depth: number; url: string | null };
  /**
   * Delivers what waits, in order, each write once; without `apply`, says what it would deliver.
   * @throws `EFORGE_BUSY` while another replay runs
   */
  function replay(
    options?: CallOptions & { apply?: boolean; markedOnly?: boolean; batch?: number; accept?: number[] },
  ): Report;
  /** The issue number that a handle stands for; null while its create has not landed. */
  function resolve(handle: string, options?: CallOptions): number | null;
  /** Whether these arguments would be queued here when the forge cannot take them. */
  function isQueueable(args: string[], options?: CallOptions): boolean;
}
