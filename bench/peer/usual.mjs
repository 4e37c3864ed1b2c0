// The common way to write the refresh: one job per name. The job upserts each
// market's quote with Prisma, then updates the item and its inventory rows.

import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from '@prisma/client';
import { Queue, QueueEvents, Worker } from 'bullmq';
import { estimate, fetchQuotes } from './provider.mjs';

// start returns a function that refreshes, and one that stops the peer.
export async function start({ database, redis, provider, markets, slots }) {
  const connection = { path: redis, maxRetriesPerRequest: null };
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: database, max: slots }, { schema: 'peer' }) });
  let quotes;

  async function price({ id, name }) {
    const of = quotes.get(name);
    if (of === undefined) return 0;
    const itemId = BigInt(id);
    const fetchedAt = BigInt(Date.now()) * 1000n;
    for (const q of of) {
      const figures = {
        ask: BigInt(q.ask), bid: BigInt(q.bid), sale: BigInt(q.sale),
        listings: BigInt(q.listings), sales: BigInt(q.sales), fetchedAt,
      };
      await prisma.snapshot.upsert({
        where: { itemId_market: { itemId, market: q.market } },
        create: { itemId, market: q.market, ...figures },
        update: figures,
      });
    }
    const { price, average } = estimate(of);
    const value = BigInt(price);
    await prisma.item.update({
      where: { id: itemId },
      data: { price: value, average: BigInt(average), markets: of.length, checkedAt: fetchedAt },
    });
    const { count } = await prisma.inventory.updateMany({ where: { itemId }, data: { value } });
    return count;
  }

  const worker = new Worker('names', (job) => price(job.data), { connection, concurrency: slots });
  const queue = new Queue('names', { connection });
  const events = new QueueEvents('names', { connection });
  await Promise.all([worker.waitUntilReady(), events.waitUntilReady()]);

  return {
    async refresh(limit) {
      const items = await prisma.item.findMany({ select: { id: true, name: true }, orderBy: { id: 'asc' }, take: limit });
      quotes = await fetchQuotes(provider, markets);
      const done = allDone(worker, items.length);
      await queue.addBulk(items.map(({ id, name }) => ({
        name: 'price', data: { id: String(id), name }, opts: { removeOnComplete: true, removeOnFail: true },
      })));
      const rows = await done;
      quotes = undefined;
      return { names: items.length, rows };
    },
    async close() {
      await Promise.all([worker.close(), queue.close(), events.close()]);
      await prisma.$disconnect();
    },
  };
}

// allDone resolves to the sum of the results of the given number of jobs.
function allDone(worker, jobs) {
  return new Promise((resolve, reject) => {
    let left = jobs;
    let sum = 0;
    const completed = (_, count) => {
      sum += count;
      if (--left === 0) end(() => resolve(sum));
    };
    const failed = (_, err) => end(() => reject(err));
    const end = (settle) => {
      worker.off('completed', completed).off('failed', failed);
      settle();
    };
    worker.on('completed', completed).on('failed', failed);
  });
}
