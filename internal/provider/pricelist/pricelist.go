// Package pricelist is a provider for price lists of the operator: CSV, a JSON array, a
// JSON object of names or NDJSON, from files or URLs, plain, gzip or zstd. The
// configuration defines the fields of a list (docs/reference/pricelist.md); well-known
// lists have presets.
// A list is read as a stream in bounded memory, and accepted as a whole or not at all: a
// malformed, truncated or wrong document is an error, and no quote of it counts. Invalid
// rows are rejected individually and counted. Names are kept byte for byte.
package pricelist

// Name is the provider's key.
const Name = "pricelist"
