package docs

import (
	"fmt"
	"strings"
)

// llms returns the index of the site for language models, in the format of llmstxt.org: the
// groups of the navigation, with a link to the Markdown source and the first sentence of each
// page.
func llms(groups []group, pages map[string]*page) []byte {
	var b strings.Builder
	b.WriteString("# Assay\n\n> Assay keeps the prices of game items up to date: a self-hosted price service with an HTTP API. The server describes every route in /openapi.json.\n")
	for _, g := range groups {
		if len(g.Links) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n", g.Title)
		for _, link := range g.Links {
			name := sourceOf(link.Path)
			fmt.Fprintf(&b, "- [%s](%s)", link.Title, name)
			if p := pages[name]; p != nil && len(p.sections) > 0 {
				if first, _, ok := strings.Cut(p.sections[0].Text, ". "); ok && len(first) <= maxNote {
					b.WriteString(": " + first + ".")
				}
			}
			b.WriteByte('\n')
		}
	}
	return []byte(b.String())
}

// maxNote is the maximum length of a sentence in the index. Longer texts are tables.
const maxNote = 240

// sourceOf returns the Markdown file of a page.
func sourceOf(target string) string {
	if target == "index.html" {
		return "README.md"
	}
	return strings.TrimSuffix(target, ".html") + ".md"
}
