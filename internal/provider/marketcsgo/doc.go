// Package marketcsgo reads the public price files of market.csgo.com: current offers, and the
// bids and sales of the last week.
//
// Documentation: https://market.csgo.com/en/api/content/start, read in November 2026. Some
// facts are known from clients only: volume counts offers, and popularity_7d counts sales. It
// is unknown whether numbers are strings, which numbers may be null, and how large the second
// file is. The package therefore accepts numbers, strings and null, and files of any size
// within its limits.
//
// The same company runs sites for other games (market.dota2.net, tf2.tm, rust.tm). They are
// reported to respond in the same way, but this is unconfirmed, so the package does not use
// them.
package marketcsgo
