// Package pricelist implements a provider that reads price lists from files or URLs.
//
// A list is a CSV table, a JSON array, a JSON object by name, or NDJSON. It may be
// compressed with gzip or zstd. The configuration maps the fields of a list to quotes, see
// docs/reference/pricelist.md. Presets exist for well-known lists.
//
// Lists are streamed, so memory use does not grow with their size. A list is accepted or
// rejected as a whole: a malformed or truncated document is an error and yields no quotes.
// Invalid rows are counted and skipped. Names are preserved byte for byte.
package pricelist

// Name is the provider's key.
const Name = "pricelist"
