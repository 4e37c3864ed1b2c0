// Package pricing computes one price from the quotes of several markets and
// explains it. It is pure: no clock, no store, no network; the same input gives
// the same result to the last digit, whatever the order of quotes, names and
// markets, and whatever the machine: only integers decide. Times count in whole
// microseconds, as they are stored, so that a price can be recomputed from its
// stored quotes.
//
// # How a refresh drives method 2
//
// Once per run and game, when all responses are there (one process, one pass per
// response):
//
//  1. NewRound(now, set) with the newest stored Set of the game, or NewSet.
//  2. For every configured market, in any order, Round.Add with its stored
//     MarketState and History, its last good Response, and the new Response if it
//     responded in this run. Points carry the key of the item (row id or a hash of
//     name and phase) and TraitsOf its name. Responses that were requested by name
//     are Partial: their last good response is the market's stored quotes.
//  3. Round.Finish. For each market's Outcome: with a Refusal, the new response is
//     not used and the last good one stays; store State and History either way
//     (History is the same slice where nothing was added). Store the Set under a
//     new number if its encoding differs from the newest one's, and the Movers with
//     the job.
//  4. An operator who accepts a refused response sets MarketState.AcceptedAt; the
//     next response like it is then good.
//
// Then per batch of items, in any process: NewPricer with the policy, the job's
// rates and its Set; for each item the quotes of all good responses (Quote.ID is
// the market's ID of step 2, and Movers.Note notes how they moved), its State and
// its References from the price history; Pricer.Price; store Priced.Price, its
// figures, Status and State. Where nothing was quoted the State is unchanged.
//
// Encodings carry a version and are bounded; MarketState, Set, Movers and History state
// their sizes.
package pricing
