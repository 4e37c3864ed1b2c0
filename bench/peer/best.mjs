// The fastest refresh with BullMQ: jobs of 500 names, each with a transaction of
// two set-based statements. After all jobs, one statement updates the inventories.

import { FlowProducer, QueueEvents, Worker } from 'bullmq';
import pg from 'pg';
import { estimate, fetchQuotes } from './provider.mjs';

const namesPerJob = 500;

const upsertSnapshots = `
  INSERT INTO snapshot AS s (item_id, market, ask, bid, sale, listings, sales, fetched_at)
  SELECT item_id, market, ask, bid, sale, listings, sales, $8
  FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    AS q (item_id, market, ask, bid, sale, listings, sales)
  ON CONFLICT (item_id, market) DO UPDATE SET ask = excluded.ask, bid = excluded.bid, sale = excluded.sale,
    listings = excluded.listings, sales = excluded.sales, fetched_at = excluded.fetched_at`;

const updateItems = `
  UPDATE item SET price = q.price, average = q.average, markets = q.markets, checked_at = $5
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[]) AS q (id, price, average, markets)
  WHERE item.id = q.id`;

const updateValues = `
  UPDATE inventory SET value = item.price FROM item
  WHERE item.id = inventory.item_id AND inventory.value IS DISTINCT FROM item.price`;

// start returns a function that refreshes, and one that stops the peer.
export async function start({ database, redis, provider, markets, slots }) {
  const connection = { path: redis, maxRetriesPerRequest: null };
  const pool = new pg.Pool({ connectionString: database, max: slots });
  let items; // items of this refresh: [{ id, name }]
  let quotes;

  const steps = {
    async prices({ from, to }) {
      const rows = rowsOf(items.slice(from, to), quotes);
      const at = Date.now() * 1000;
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        await client.query({ name: 'snapshots', text: upsertSnapshots, values: [...rows.snapshots, at] });
        await client.query({ name: 'items', text: updateItems, values: [...rows.items, at] });
        await client.query('COMMIT');
      } catch (err) {
        await client.query('ROLLBACK');
        throw err;
      } finally {
        client.release();
      }
      return rows.snapshots[0].length;
    },
    async inventories() {
      return (await pool.query(updateValues)).rowCount;
    },
  };

  const worker = new Worker('refresh', (job) => steps[job.name](job.data), { connection, concurrency: slots });
  const flows = new FlowProducer({ connection });
  const events = new QueueEvents('refresh', { connection });
  await Promise.all([worker.waitUntilReady(), events.waitUntilReady()]);

  return {
    async refresh(limit) {
      items = (await pool.query('SELECT id, name FROM item ORDER BY id LIMIT $1', [limit])).rows;
      quotes = await fetchQuotes(provider, markets);
      const options = { removeOnComplete: true, removeOnFail: true, failParentOnFailure: true };
      const children = [];
      for (let from = 0; from < items.length; from += namesPerJob) {
        children.push({ name: 'prices', queueName: 'refresh', data: { from, to: from + namesPerJob }, opts: options });
      }
      const last = await flows.add({ name: 'inventories', queueName: 'refresh', children, opts: { removeOnComplete: 10 } });
      const rows = await last.job.waitUntilFinished(events);
      quotes = undefined;
      return { names: items.length, rows };
    },
    async close() {
      await Promise.all([worker.close(), flows.close(), events.close()]);
      await pool.end();
    },
  };
}

// rowsOf returns the rows to write, as arrays of columns.
function rowsOf(items, quotes) {
  const s = [[], [], [], [], [], [], []];
  const i = [[], [], [], []];
  for (const { id, name } of items) {
    const of = quotes.get(name);
    if (of === undefined) continue;
    for (const q of of) {
      s[0].push(id);
      s[1].push(q.market);
      s[2].push(q.ask);
      s[3].push(q.bid);
      s[4].push(q.sale);
      s[5].push(q.listings);
      s[6].push(q.sales);
    }
    const { price, average } = estimate(of);
    i[0].push(id);
    i[1].push(price);
    i[2].push(average);
    i[3].push(of.length);
  }
  return { snapshots: s, items: i };
}
