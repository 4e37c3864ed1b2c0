package pricelist

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"assay/internal/catalog"
)

// Real names contain double spaces, trailing spaces, newlines and special characters. Every
// format must preserve them byte for byte.
func TestReal_EveryFormatPreservesNames(t *testing.T) {
	names := realNames(t)
	for _, format := range []string{formatCSV, formatArray, formatObject, formatNDJSON} {
		t.Run(format, func(t *testing.T) {
			l := compileOne(t, `{"key":"n","location":"x","format":"`+format+`","appId":440,"currency":"USD",
				"name":"name","markets":[{"key":"m","ask":"price"}]}`)
			if format == formatObject {
				l = compileOne(t, `{"key":"n","location":"x","format":"jsonObject","appId":440,"currency":"USD",
				"markets":[{"key":"m","ask":"price"}]}`)
			}
			got := mustRead(t, l, render(t, format, names))
			if len(got.quotes) != len(names) || len(got.rejects) != 0 {
				t.Fatalf("got %d quotes and %d rejects, want %d quotes", len(got.quotes), len(got.rejects), len(names))
			}
			for i, q := range got.quotes {
				if q.Name != names[i] {
					t.Fatalf("got name %q, want %q", q.Name, names[i])
				}
			}
		})
	}
}

// realNames returns unusualNames and all names of TF2 and CS2, without duplicates.
func realNames(t *testing.T) []string {
	var tf2 []string
	if err := json.Unmarshal(open(t, dataFile(t, "tf2_names_schema.json.gz")), &tf2); err != nil {
		t.Fatal(err)
	}
	_, records := table(t, dataFile(t, "cs2_names_all.csv.gz"))
	seen := map[string]bool{}
	var names []string
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, name := range unusualNames {
		add(name)
	}
	for _, name := range tf2 {
		add(name)
	}
	for _, record := range records {
		add(record[0])
	}
	return names
}

var unusualNames = []string{
	"#CSGO_crate", "'Fish'", "a  b", " leading", "trailing ", "\ttab", "line\nbreak", "carriage\r\nreturn", "back\\slash",
	`"quoted"`, `"`, `""`, "comma, here", "&lt;", "a & b + c ? @ $ * ~ % < >", "★ StatTrak™ Karambit", "壱", "弐", "♥", "龍",
	"\u00a0", "\u2028", "\u0301", "\U0001F600", strings.Repeat("x", catalog.MaxName),
}

// render formats a list of the names with a price of 1.
func render(t *testing.T, format string, names []string) string {
	t.Helper()
	var b strings.Builder
	switch format {
	case formatCSV:
		b.WriteString("price,name\n")
		for _, name := range names {
			fmt.Fprintf(&b, "1,\"%s\"\n", strings.ReplaceAll(name, `"`, `""`))
		}
		return b.String()
	case formatArray, formatNDJSON:
		for i, name := range names {
			row, err := json.Marshal(map[string]any{"name": name, "price": 1})
			if err != nil {
				t.Fatal(err)
			}
			if format == formatArray {
				b.WriteString([]string{"[", ","}[min(i, 1)])
			}
			b.Write(append(row, '\n'))
		}
	case formatObject:
		for i, name := range names {
			key, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s%s:{\"price\":1}\n", []string{"{", ","}[min(i, 1)], key)
		}
		b.WriteString("}")
		return b.String()
	}
	if format == formatArray {
		b.WriteString("]")
	}
	return b.String()
}
