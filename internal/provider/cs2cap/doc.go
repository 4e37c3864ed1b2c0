// Package cs2cap reads the asks of items on many markets from cs2cap. It requests up to a
// hundred names, a single name, or a stream of all items.
//
// Documentation: https://docs.cs2cap.com and its OpenAPI file, read in November 2026. Three
// facts are undocumented:
//
//   - The rounding of lowest_ask. The package prefers lowest_ask_decimal.
//   - The budget that the rate-limit headers describe. The package assumes the monthly quota,
//     or for a stream the number of stream starts.
//   - The phase in a row of market/items. The package assumes the same form as in other rows.
package cs2cap
