// Sends a request until it succeeds, the server refuses it, or all attempts have failed.

export interface Options {
  /** A platform token, an administrator's token or an API key. */
  token?: string;
  /** For programs that only start refreshes. */
  syncSecret?: string;
  /** Maximum number of attempts per request; 5 by default. */
  attempts?: number;
  /** Longest wait between two attempts in milliseconds; 60,000 by default. If the server demands a longer wait, the client throws the error at once. */
  maxWait?: number;
  /** Longest time without data from the server in milliseconds; 120,000 by default, longer than any long poll. */
  timeout?: number;
  /** Sends the requests; by default the global fetch. */
  fetch?: (request: Request) => Promise<Response>;
}

/** A response with a status of 400 or more. */
export class AssayError extends Error {
  constructor(
    readonly status: number,
    /** Stable code of the problem; empty if a proxy sent the response. */
    readonly code: string,
    detail: string,
    /** Also in the server's log. */
    readonly requestId: string,
    /** The wait that the server demands, in milliseconds. */
    readonly retryAfter: number,
  ) {
    super(code ? `${code} (${status}): ${detail}` : `status ${status}`);
    this.name = "AssayError";
  }
}

/** Reports whether the same request may succeed later: after a lost connection, 429 or 5xx. */
export function temporary(error: unknown): boolean {
  if (error instanceof AssayError) return error.status === 429 || error.status >= 500;
  return error instanceof TypeError || (error instanceof DOMException && error.name === "TimeoutError");
}

export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal?.addEventListener("abort", end);
  });
}

const keyRoutes = /\/api\/listings(\/batch|\/[^/]+\/purchase)?$|\/entries$/;
const harmless = /\/(lookup|quotes|quote|sync|market-prices\/refresh|listings\/cancel)$/;
const idempotencyKey = "Idempotency-Key";

export function retrying(options: Options): (request: Request) => Promise<Response> {
  const { attempts = 5, maxWait = 60_000, timeout = 120_000, fetch: send = fetch } = options;
  return async (request) => {
    const path = new URL(request.url).pathname;
    if (options.token) request.headers.set("Authorization", `Bearer ${options.token}`);
    if (options.syncSecret) request.headers.set("x-market-sync-secret", options.syncSecret);
    if (request.method === "POST" && keyRoutes.test(path) && !request.headers.get(idempotencyKey)) {
      request.headers.set(idempotencyKey, crypto.randomUUID()); // the same one for all attempts
    }
    // The server may have executed a failed POST. So it must have a key, only read, or change nothing when it is repeated.
    const repeatable = request.method !== "POST" || request.headers.has(idempotencyKey) || harmless.test(path);
    for (let attempt = 1; ; attempt++) {
      try {
        return await once(send, request, timeout);
      } catch (error) {
        const refused = error instanceof AssayError ? error : undefined;
        const executable = repeatable || refused?.status === 429; // 429: not executed
        const full = Math.min(maxWait, 500 * 2 ** (attempt - 1));
        const pause = refused?.retryAfter || full * (0.5 + Math.random() / 2);
        if (attempt >= attempts || !temporary(error) || !executable || pause > maxWait || request.signal.aborted) throw error;
        await sleep(pause, request.signal);
        if (request.signal.aborted) throw error;
      }
    }
  };
}

/** Makes one attempt. It reads JSON completely, so that a connection lost within the response is a failed attempt too. */
async function once(send: (request: Request) => Promise<Response>, original: Request, timeout: number): Promise<Response> {
  const limit = new AbortController();
  const attempt = new Request(original.clone(), { signal: AbortSignal.any([original.signal, limit.signal]) });
  const wait = <T>(step: Promise<T>) => within(step, timeout, attempt, original.signal, limit);
  const response = await wait(send(attempt));
  if (response.status >= 400) {
    const text = await read(response, wait).then((body) => body.text()).catch(() => "");
    let problem: Record<string, unknown> = {};
    try {
      problem = (JSON.parse(text) as Record<string, unknown> | null) ?? {};
    } catch {
      // not a problem document
    }
    const member = (name: string) => (typeof problem[name] === "string" ? problem[name] : "");
    const after = milliseconds(response.headers.get("Retry-After"));
    throw new AssayError(response.status, member("code"), member("detail"), member("requestId"), after);
  }
  if (!response.headers.get("Content-Type")?.startsWith("application/json")) return response;
  return new Response(await read(response, wait), { status: response.status, headers: response.headers });
}

/** Reads the body of a response. wait limits the time between two parts. */
async function read(response: Response, wait: <T>(step: Promise<T>) => Promise<T>): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const reader = response.body?.getReader();
  while (reader) {
    const { done, value } = await wait(reader.read());
    if (done) break;
    parts.push(value);
  }
  return new Blob(parts);
}

const longestTimer = 2 ** 31 - 1; // a longer one ends at once

/**
 * Waits for a step of an attempt. If nothing comes for the time, or the caller aborts, it aborts the attempt and throws.
 * It does not rely on that abort: a promise of fetch can stay open for ever, and Node.js then ends without an error.
 */
function within<T>(step: Promise<T>, time: number, attempt: Request, caller: AbortSignal, limit: AbortController): Promise<T> {
  let end = () => {};
  const stopped = new Promise<never>((_, reject) => {
    const stop = (reason: Error) => {
      limit.abort(reason);
      reject(reason);
    };
    const abort = () => stop(caller.reason as Error);
    const expire = () => stop(new DOMException(`${attempt.url} sent nothing for ${time} ms`, "TimeoutError"));
    const timer = setTimeout(expire, Math.min(time, longestTimer));
    caller.addEventListener("abort", abort);
    end = () => {
      clearTimeout(timer);
      caller.removeEventListener("abort", abort);
    };
    if (caller.aborted) abort();
  });
  return Promise.race([step, stopped]).finally(() => end());
}

/** Returns the wait of a Retry-After header: seconds or a date. */
function milliseconds(after: string | null): number {
  if (!after) return 0;
  const wait = /^\d+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - Date.now();
  return Math.max(0, wait || 0);
}
