// Package steam reads the Steam Community Market, one name per request: the lowest ask,
// and the sales of the last day.
//
// Steam documents neither of the two endpoints. The package reads them as observed from
// 2025 to September 2026. Three things are not confirmed and therefore tolerated:
//
//   - A 500 with the body null or {"success":false} may mean an unknown name. It brings no
//     quote, and the request is not repeated at once.
//   - All endpoints may share one limit, so they are counted together.
//   - The response of orderbook is wrapped in an object since August 2026. Both forms are
//     read.
//
// Steam has one page for all phases of a finish such as Doppler. The quote of such a name
// is that of the cheapest phase, and belongs to the name without a phase.
package steam
