// This module reads the quotes from the same simulator as Assay.

const micro = 1_000_000;

// fetchQuotes reads every market's file and returns quotes by name:
// Map { name => [{ market, ask, bid, sale, listings, sales }] }. Of an item's
// phases only the cheapest is used.
export async function fetchQuotes(base, markets) {
  const files = await Promise.all(markets.map((m) => fetchFile(`${base}/v1/markets/${m}/prices.json`)));
  const quotes = new Map();
  for (const file of files) {
    for (const row of file.items) {
      if (row.ask == null) continue;
      add(quotes, row.name, quoteOf(file, row));
    }
  }
  return quotes;
}

async function fetchFile(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: status ${answer.status}`);
  return answer.json();
}

function quoteOf(file, row) {
  const amount = (v) => (v == null ? 0 : Math.round((Number(v) * micro) / file.unit));
  return {
    market: file.market,
    ask: amount(row.ask),
    bid: amount(row.bid),
    sale: amount(row.sale),
    listings: row.listings ?? -1,
    sales: row.sales ?? -1,
  };
}

function add(quotes, name, quote) {
  const of = quotes.get(name);
  if (of === undefined) {
    quotes.set(name, [quote]);
    return;
  }
  // Process the files one by one, so that phases of a market are adjacent.
  const last = of[of.length - 1];
  if (last.market !== quote.market) of.push(quote);
  else if (quote.ask < last.ask) of[of.length - 1] = quote;
}

// estimate returns an item's price, which is the median of the asks, and the
// average.
export function estimate(quotes) {
  const asks = quotes.map((q) => q.ask).sort((a, b) => a - b);
  const middle = asks.length >> 1;
  const price = asks.length % 2 ? asks[middle] : Math.round((asks[middle - 1] + asks[middle]) / 2);
  return { price, average: Math.round(asks.reduce((sum, ask) => sum + ask, 0) / asks.length) };
}
