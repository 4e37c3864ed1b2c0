// Package refresh updates prices. A refresh is a job with four stages:
//
//   - plan: select the items that are due, and what to fetch from each provider (units);
//   - fetch: claim a unit, decode its response as a stream, and store it encoded;
//   - estimate: once all units that a batch of items waits for have ended, estimate its
//     items and write them in one transaction;
//   - apply: write the new prices to all inventory rows.
//
// All work is stored in database rows. Each step begins by claiming a row, and its final
// write requires the fencing token of the claim. If a process is killed, another worker
// continues from the rows, and late writes of the killed process are rejected. A dispatcher
// only wakes the workers. A lost wake delays the work by seconds.
//
// A quote has one type in each step:
//
//   - provider.Quote: decoded from the response, passed to quoteSink.Quote;
//   - quoteRecord: a record of the stored response (codec.go);
//   - jobQuote: a quote of this job for an item of a batch (batch.go);
//   - pricing.Quote: input of the estimate (quotes.go);
//   - MarketSnapshot: stored with the item as the last quote of its market (quotes_sql.go).
//
// Items and stored responses are divided into name buckets (catalog.Bucket). A batch is a
// range of buckets, so it reads only the parts of a response that it needs.
package refresh
