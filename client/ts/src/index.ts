// A client of an Assay price server. Its calls have the types of the server's OpenAPI document.
import createClient, { type Client } from "openapi-fetch";
import { AssayError, type Options, retrying, sleep, temporary } from "./retry.js";
import type { components, paths } from "./schema.js";

export { AssayError, type Options, temporary } from "./retry.js";
export type { components, paths } from "./schema.js";
export { verifyWebhook } from "./webhook.js";

export type Price = components["schemas"]["PublishedPrice"];

/** A part of the change feed. Store its prices and cursor in one transaction. */
export interface Batch {
  /** A snapshot: the prices replace all prices that you have. */
  reset: boolean;
  prices: Price[];
  /** Number of the last change that you have once the prices are stored. */
  cursor: string;
  /** A temporary failure. There are no prices; continue the loop to retry. */
  error?: unknown;
}

/** Calls a server with retries. A status of 400 or more is thrown as an AssayError. */
export type Assay = Client<paths>;

/** Returns a client of the server at an address such as https://prices.example. */
export function connect(baseUrl: string, options: Options = {}): Assay {
  return createClient<paths>({ baseUrl, fetch: retrying(options) });
}

/** Returns the data of a response of a client. */
export function data<T>(response: { data?: T }): T {
  if (response.data === undefined) throw new Error("the response has no data");
  return response.data;
}

/** Lists all items of a paged route. fetchPage reads the page of a cursor. */
export async function* pages<T>(fetchPage: (cursor?: string) => Promise<{ items: T[]; nextCursor?: string | null }>): AsyncGenerator<T> {
  for (let cursor: string | undefined; ; ) {
    const page = await fetchPage(cursor);
    yield* page.items;
    if (!page.nextCursor) return;
    cursor = page.nextCursor;
  }
}

/** What the prices of follow contain. fields and currency are parameters of both the snapshot and the changes. */
export interface FollowOptions {
  /** Figures to add, separated by commas: interval, average, usedMarkets. Items of which only figures changed are changes too. */
  fields?: string;
  /**
   * Currency of all amounts, the base currency by default. A batch is converted at the exchange rates of its time. A
   * new rate is not a change.
   */
  currency?: string;
  /** Ends the sequence. */
  signal?: AbortSignal;
}

const pollSeconds = 30;
const pollItems = 1000;
const lastPause = 30_000; // milliseconds

/**
 * Yields the changes of all prices after a cursor, each exactly once and in order, and waits for more until the
 * signal aborts. Without a cursor, and when it has expired, it begins with a snapshot. If the server cannot be
 * reached, it yields a batch with an error, then retries. It throws after other errors. After a restart, continue a
 * cursor with the same options.
 */
export async function* follow(api: Assay, since = "", options: FollowOptions = {}): AsyncGenerator<Batch> {
  const { signal } = options;
  let cursor = since === "0" ? "" : since;
  for (let pause = 1000; !signal?.aborted; ) {
    let batch: Batch;
    try {
      batch = cursor ? await changes(api, cursor, options) : await snapshot(api, options);
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof AssayError && error.code === "cursor_expired" && cursor) {
        cursor = "";
        continue;
      }
      if (!temporary(error)) throw error;
      yield { reset: false, prices: [], cursor, error };
      await sleep(pause, signal);
      pause = Math.min(2 * pause, lastPause);
      continue;
    }
    pause = 1000;
    if (!batch.reset && batch.cursor === cursor) continue; // nothing changed while the server waited
    cursor = batch.cursor;
    yield batch;
  }
}

async function snapshot(api: Assay, { signal, ...query }: FollowOptions): Promise<Batch> {
  const all = data(await api.GET("/api/prices/snapshot.json", { params: { query }, signal }));
  return { reset: true, prices: all.items, cursor: all.change };
}

async function changes(api: Assay, cursor: string, { signal, ...selected }: FollowOptions): Promise<Batch> {
  // Numbers of changes are below 2^53 for centuries: they begin as microseconds.
  const query = { since: Number(cursor), wait: pollSeconds, limit: pollItems, ...selected };
  const page = data(await api.GET("/api/prices/changes", { params: { query }, signal }));
  return { reset: false, prices: page.items.map(({ change: _, ...price }) => price), cursor: page.next };
}
