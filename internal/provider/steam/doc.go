// Package steam implements a provider for the Steam Community Market. Each request is for
// one name. A response has the lowest ask and either the sales of the last day or the
// highest bid.
//
// Steam does not document these endpoints. The package supports the responses observed
// from 2025 to September 2026. Three assumptions are not confirmed:
//
//   - Status 500 with the body null or {"success":false} may mean that the name is unknown.
//     The package returns an error and does not retry.
//   - All endpoints may share one rate limit. The package counts their requests together.
//   - Since August 2026, orderbook wraps its response in an object. The package reads both
//     forms.
//
// Steam has one page for all phases of a finish such as Doppler. The quote of such a name
// is the quote of its cheapest phase. The package returns it without a phase.
package steam
