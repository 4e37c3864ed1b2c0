// Package pricing computes one price from the quotes of several markets and explains it.
//
// The package uses no clock, database or network. The same input gives exactly the same
// result on every machine, because all decisions use integers. The order of quotes, names
// and markets does not matter. Times have microsecond precision, as in the database, so a
// price can be recomputed from its stored quotes.
//
// Comments refer to the steps of method 2 by number. The page docs/contribute/pricing.md
// describes the method.
//
// # How a refresh uses the package
//
// When all responses of a run have arrived, one process does the following for each game:
//
//  1. Call NewRound with the newest stored Set of the game, or with the result of NewSet.
//  2. Call Round.Add for every configured market, in any order. Its arguments are the
//     stored ValidationState and History, the last good Response, and the new Response if
//     there is one. The key of a Point identifies the item, and its traits come from
//     TraitsOf. A response that was requested by name is Partial. Its last good response
//     consists of the stored quotes of the market.
//  3. Call Round.Finish. If the Outcome of a market has a Refusal, keep using the last
//     good response. Store the State in any case, and the History if it is not nil. Store
//     the Set under a new number if its encoding has changed. Store the Movers with the
//     job.
//  4. When an operator accepts a refused response, set ValidationState.AcceptedAt. The next
//     similar response is then good.
//
// Any process can then price a batch of items:
//
//  1. Call NewPricer with the policy, the rates of the job and its Set.
//  2. For each item, collect the quotes of all good responses. Quote.ID is the ID of the
//     market in the round. Movers.Annotate adds how the quotes moved.
//  3. Call Pricer.Price with the quotes, the State of the item and its References from
//     the price history.
//  4. Store Priced.Price, the other figures, Status and State. Without quotes, the State
//     is unchanged.
//
// All encodings start with a version and have a bounded size, which is documented at
// ValidationState, Set, Movers and History.
package pricing
