// Package feetest provides invalid documents of fee rules and activates rules for tests.
package feetest

// Document is an invalid document of fee rules.
type Document struct {
	Text   string
	Faults []string // all errors, each as "pointer code", sorted
}

// OneRule returns a document with one rule that has an id, a priority and the given members.
func OneRule(members string) string {
	return `{"rules":[{"id":"a","priority":1,` + members + `}],"fallback":{"basisPoints":0}}`
}

// TwoRules returns a document with two rules that have the given members.
func TwoRules(first, second string) string {
	return `{"rules":[{"basisPoints":1,` + first + `},{"basisPoints":1,` + second + `}],"fallback":{"basisPoints":0}}`
}

const usd = `"conditions":{"currency":"USD"},`

// Broken returns one invalid document per kind of error, by description.
func Broken() map[string]Document {
	return map[string]Document{
		"empty text":                    {``, []string{" malformed"}},
		"no JSON":                       {`rules: []`, []string{" malformed"}},
		"truncated JSON":                {`{"rules":[`, []string{" malformed"}},
		"two values":                    {OneRule(`"basisPoints":1`) + `{}`, []string{" malformed"}},
		"invalid UTF-8":                 {"{\"rules\":[{\"id\":\"\xff\"", []string{"/rules/0/id malformed"}},
		"duplicate member":              {`{"rules":[],"rules":[]}`, []string{"/fallback required", "/rules duplicate_member"}},
		"duplicate member, escaped":     {`{"rules":[],"fallback":{"basisPoints":1,"basis\u0050oints":2}}`, []string{"/fallback/basisPoints duplicate_member"}},
		"duplicate condition":           {OneRule(`"basisPoints":1,"conditions":{"kind":"sale","kind":"deposit"}`), []string{"/rules/0/conditions/kind duplicate_member"}},
		"a byte order mark":             {"\ufeff" + OneRule(`"basisPoints":1`), []string{" malformed"}},
		"UTF-16":                        {"\xff\xfe{\x00}\x00", []string{" malformed"}},
		"a lone surrogate":              {OneRule(`"basisPoints":1,"conditions":{"paymentMethod":"\ud800"}`), []string{"/rules/0/conditions/paymentMethod malformed"}},
		"trailing text":                 {OneRule(`"basisPoints":1`) + " and more", []string{" malformed"}},
		"trailing NUL":                  {OneRule(`"basisPoints":1`) + "\x00", []string{" malformed"}},
		"a comment":                     {`{"rules":[], /* none */ "fallback":{"basisPoints":1}}`, []string{" malformed"}},
		"trailing comma":                {`{"rules":[],"fallback":{"basisPoints":1},}`, []string{" malformed"}},
		"no number":                     {OneRule(`"basisPoints":NaN`), []string{"/rules/0/basisPoints malformed"}},
		"invalid value, then truncated": {`{"rules":[{"id":"a","priority":1,"basisPoints":99999}`, []string{" malformed", "/rules/0/basisPoints out_of_range"}},
		"invalid value, duplicate member, invalid value": {
			`{"rules":[{"id":"a","priority":1,"basisPoints":99999},{"id":"a","id":"b","priority":2}],"fallback":{}}`,
			[]string{"/fallback/basisPoints required", "/rules/0/basisPoints out_of_range", "/rules/1/basisPoints required", "/rules/1/id duplicate_id", "/rules/1/id duplicate_member"},
		},
		"several errors in tiers": {
			OneRule(usd + `"tiers":[{"from":-1,"below":0,"basisPoints":"x","rate":1},{"from":5,"below":5,"basisPoints":1}]`),
			[]string{"/rules/0/tiers/0/basisPoints wrong_type", "/rules/0/tiers/0/below out_of_range", "/rules/0/tiers/0/from out_of_range", "/rules/0/tiers/0/rate unknown_member", "/rules/0/tiers/1/below empty_range", "/rules/0/tiers/1/below tier_not_open"},
		},
		"an array":                   {`[]`, []string{" wrong_type", "/fallback required", "/rules required"}},
		"null":                       {`null`, []string{" wrong_type", "/fallback required", "/rules required"}},
		"empty":                      {`{}`, []string{"/fallback required", "/rules required"}},
		"no fallback":                {`{"rules":[]}`, []string{"/fallback required"}},
		"no rules":                   {`{"fallback":{"basisPoints":0}}`, []string{"/rules required"}},
		"fallback without rate":      {`{"rules":[],"fallback":{}}`, []string{"/fallback/basisPoints required"}},
		"fallback with amounts":      {`{"rules":[],"fallback":{"basisPoints":1,"fixed":30}}`, []string{"/fallback/fixed unknown_member"}},
		"null fallback":              {`{"rules":[],"fallback":null}`, []string{"/fallback wrong_type"}},
		"null rules":                 {`{"rules":null,"fallback":{"basisPoints":1}}`, []string{"/rules wrong_type"}},
		"null rule":                  {`{"rules":[null,7],"fallback":{"basisPoints":1}}`, []string{"/rules/0 wrong_type", "/rules/1 wrong_type"}},
		"unknown members":            {`{"rules":[],"fallback":{"basisPoints":1},"Rules":[],"x/y":1}`, []string{"/Rules unknown_member", "/x~1y unknown_member"}},
		"an empty rule":              {`{"rules":[{}],"fallback":{"basisPoints":1}}`, []string{"/rules/0/basisPoints required", "/rules/0/id required", "/rules/0/priority required"}},
		"points above the maximum":   {OneRule(`"basisPoints":10001`), []string{"/rules/0/basisPoints out_of_range"}},
		"negative points":            {OneRule(`"basisPoints":-1`), []string{"/rules/0/basisPoints out_of_range"}},
		"fractional points":          {OneRule(`"basisPoints":2.5`), []string{"/rules/0/basisPoints out_of_range"}},
		"points with an exponent":    {OneRule(`"basisPoints":1e2`), []string{"/rules/0/basisPoints out_of_range"}},
		"points as a string":         {OneRule(`"basisPoints":"100"`), []string{"/rules/0/basisPoints wrong_type"}},
		"null points":                {OneRule(`"basisPoints":null`), []string{"/rules/0/basisPoints wrong_type"}},
		"amounts above the maximum":  {OneRule(usd + `"basisPoints":1,"fixed":9223372036854775808`), []string{"/rules/0/fixed out_of_range"}},
		"negative amounts":           {OneRule(usd + `"basisPoints":1,"fixed":-1,"minimum":-1,"maximum":-1`), []string{"/rules/0/fixed out_of_range", "/rules/0/maximum out_of_range", "/rules/0/minimum out_of_range"}},
		"minimum above maximum":      {OneRule(usd + `"basisPoints":1,"minimum":10,"maximum":9`), []string{"/rules/0/minimum minimum_above_maximum"}},
		"amounts without a currency": {OneRule(`"basisPoints":1,"fixed":1,"minimum":1,"maximum":2`), []string{"/rules/0/fixed needs_one_currency", "/rules/0/maximum needs_one_currency", "/rules/0/minimum needs_one_currency"}},
		"amounts with two currencies": {
			OneRule(`"basisPoints":1,"fixed":1,"conditions":{"currency":["USD","EUR"],"amount":{"from":5}}`),
			[]string{"/rules/0/conditions/amount needs_one_currency", "/rules/0/fixed needs_one_currency"},
		},
		"an empty range":                 {OneRule(`"basisPoints":1,"conditions":{"currency":"USD","amount":{"from":5,"below":5}}`), []string{"/rules/0/conditions/amount/below empty_range"}},
		"an unknown kind":                {OneRule(`"basisPoints":1,"conditions":{"kind":"gift"}`), []string{"/rules/0/conditions/kind unknown_value"}},
		"one unknown kind of two":        {OneRule(`"basisPoints":1,"conditions":{"kind":["sale","Sale"]}`), []string{"/rules/0/conditions/kind/1 unknown_value"}},
		"unknown currencies":             {OneRule(`"basisPoints":1,"conditions":{"currency":["XXX","usd","BTC","USD"]}`), []string{"/rules/0/conditions/currency/0 unknown_currency", "/rules/0/conditions/currency/1 unknown_currency", "/rules/0/conditions/currency/2 unknown_currency"}},
		"unknown countries":              {OneRule(`"basisPoints":1,"conditions":{"country":["UK","EU","DEU","de"]}`), []string{"/rules/0/conditions/country/0 unknown_country", "/rules/0/conditions/country/1 unknown_country", "/rules/0/conditions/country/2 unknown_country", "/rules/0/conditions/country/3 unknown_country"}},
		"a method with a space":          {OneRule(`"basisPoints":1,"conditions":{"paymentMethod":"credit card"}`), []string{"/rules/0/conditions/paymentMethod invalid_name"}},
		"duplicate value":                {OneRule(`"basisPoints":1,"conditions":{"country":["DE","AT","DE"]}`), []string{"/rules/0/conditions/country/2 duplicate_value"}},
		"an empty condition":             {OneRule(`"basisPoints":1,"conditions":{"country":[]}`), []string{"/rules/0/conditions/country out_of_range"}},
		"an unknown condition":           {OneRule(`"basisPoints":1,"conditions":{"method":"card"}`), []string{"/rules/0/conditions/method unknown_member"}},
		"an unknown basis":               {OneRule(`"basisPoints":1,"basis":"total"`), []string{"/rules/0/basis unknown_value"}},
		"an unknown rounding":            {OneRule(`"basisPoints":1,"rounding":"halfDown"`), []string{"/rules/0/rounding unknown_value"}},
		"invalid time":                   {OneRule(`"basisPoints":1,"effectiveFrom":"tomorrow","effectiveUntil":1700000000`), []string{"/rules/0/effectiveFrom invalid_text", "/rules/0/effectiveUntil wrong_type"}},
		"until before from":              {OneRule(`"basisPoints":1,"effectiveFrom":"2026-02-01T00:00:00Z","effectiveUntil":"2026-02-01T01:00:00+01:00"`), []string{"/rules/0/effectiveUntil empty_period"}},
		"an id with a slash":             {TwoRules(`"id":"a/b","priority":1`, `"id":"","priority":2`), []string{"/rules/0/id invalid_name", "/rules/1/id out_of_range"}},
		"the fallback's id":              {`{"rules":[{"id":"fallback","priority":1,"basisPoints":1}],"fallback":{"basisPoints":0}}`, []string{"/rules/0/id reserved_id"}},
		"duplicate id":                   {TwoRules(`"id":"a","priority":1`, `"id":"a","priority":2`), []string{"/rules/1/id duplicate_id"}},
		"priority out of range":          {`{"rules":[{"id":"a","priority":1000001,"basisPoints":1}],"fallback":{"basisPoints":0}}`, []string{"/rules/0/priority out_of_range"}},
		"tiers and a rate":               {OneRule(`"basisPoints":1,"fixed":0,"tiers":[{"from":0,"basisPoints":1}]`), []string{"/rules/0/basisPoints tiers_and_rate", "/rules/0/fixed tiers_and_rate"}},
		"no tier":                        {OneRule(`"tiers":[]`), []string{"/rules/0/tiers empty_range"}},
		"null tiers":                     {OneRule(`"tiers":[null]`), []string{"/rules/0/tiers/0 wrong_type"}},
		"an empty tier":                  {OneRule(`"tiers":[{}]`), []string{"/rules/0/tiers/0/basisPoints required", "/rules/0/tiers/0/from required"}},
		"tiers without a currency":       {OneRule(`"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":9,"basisPoints":1}]`), []string{"/rules/0/tiers needs_one_currency"}},
		"tiers that do not start at 0":   {OneRule(usd + `"tiers":[{"from":1,"below":9,"basisPoints":1},{"from":9,"basisPoints":1}]`), []string{"/rules/0/tiers/0/from tier_gap"}},
		"tiers with a gap":               {OneRule(usd + `"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":10,"basisPoints":1}]`), []string{"/rules/0/tiers/1/from tier_gap"}},
		"tiers that overlap":             {OneRule(usd + `"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":8,"basisPoints":1}]`), []string{"/rules/0/tiers/1/from tier_overlap"}},
		"tiers with a limited end":       {OneRule(usd + `"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":9,"below":10,"basisPoints":1}]`), []string{"/rules/0/tiers/1/below tier_not_open"}},
		"unlimited tier before the last": {OneRule(usd + `"tiers":[{"from":0,"basisPoints":1},{"from":9,"basisPoints":1}]`), []string{"/rules/0/tiers/0 tier_open_too_early"}},
		"tier with an empty range":       {OneRule(usd + `"tiers":[{"from":0,"below":9,"basisPoints":1},{"from":9,"below":9,"basisPoints":1},{"from":9,"basisPoints":10001}]`), []string{"/rules/0/tiers/1/below empty_range", "/rules/0/tiers/2/basisPoints out_of_range"}},
		"ambiguous":                      {TwoRules(`"id":"a","priority":1`, `"id":"b","priority":1,"conditions":{"kind":"sale"}`), []string{"/rules/1 ambiguous_rules"}},
		"ambiguous in a short period": {
			TwoRules(`"id":"a","priority":1,"effectiveUntil":"2026-02-01T00:00:00.000001Z"`, `"id":"b","priority":1,"effectiveFrom":"2026-02-01T00:00:00Z"`),
			[]string{"/rules/1 ambiguous_rules"},
		},
		"ambiguous for one amount": {
			TwoRules(`"id":"a","priority":1,"conditions":{"currency":"USD","amount":{"from":0,"below":11}}`, `"id":"b","priority":1,"conditions":{"currency":["EUR","USD"]}`),
			[]string{"/rules/1 ambiguous_rules"},
		},
		"many errors": {
			`{"rules":[{"id":"a","priority":1,"basisPoints":10001,"conditions":{"currency":"XXX","country":"ZZ"}},{"id":"a","priority":2,"basisPoints":1,"minimum":2,"maximum":1}],"surplus":[]}`,
			[]string{
				"/fallback required", "/rules/0/basisPoints out_of_range", "/rules/0/conditions/country unknown_country", "/rules/0/conditions/currency unknown_currency",
				"/rules/1/id duplicate_id", "/rules/1/maximum needs_one_currency", "/rules/1/minimum minimum_above_maximum", "/rules/1/minimum needs_one_currency", "/surplus unknown_member",
			},
		},
	}
}
