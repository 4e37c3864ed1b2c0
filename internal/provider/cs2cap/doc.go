// Package cs2cap reads the asks of items on many markets from cs2cap. It requests up to a
// hundred names, a single name, or a stream of all items.
//
// Documentation: https://docs.cs2cap.com and its OpenAPI file, read in November 2026. It
// leaves three questions open:
//
// Rounding of lowest_ask is undocumented, so the package prefers the decimal next to it.
//
// The budget that the rate-limit headers describe is undocumented, so they count for the month
// only if their reset agrees with the end of the month.
//
// The phase in a row of market/items is undocumented. The package assumes that it has the same
// form as in other rows.
package cs2cap
