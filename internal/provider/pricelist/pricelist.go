// Package pricelist is the provider that reads price lists which an operator
// already has: CSV, a JSON array, a JSON object of names or NDJSON, from files
// or URLs, plain, gzip or zstd. Where things are in a list is defined by the
// configuration (docs/reference/pricelist.md); well-known lists have presets.
//
// A list is read as a stream in bounded memory, and taken whole or not at all:
// what is malformed in the middle, cut off or not a list of prices is an error,
// and nothing of it counts. Rows that cannot be a quote are rejected one by one
// and counted. Names are kept byte for byte.
package pricelist

// Name is the provider's key.
const Name = "pricelist"
