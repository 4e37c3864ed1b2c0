// Package refresh keeps prices fresh. A refresh is a job whose work is rows, in four
// stages:
//
//   - plan: which items are due, and what to fetch from each provider (fetch units);
//   - fetch: a unit is claimed, and its response decoded as a stream and stored encoded;
//   - estimate: once all units that a batch of items waits for have ended, its items are
//     estimated and written in one transaction;
//   - apply: new prices are written to all inventory rows.
//
// Each step begins by claiming its row and ends with a write that demands the claim's
// fencing token. So a process may be killed at any instant: the next worker continues from
// the rows, and late writes of a former owner are refused. A dispatcher only wakes the
// workers; losing a wake costs seconds.
package refresh
