package docs_test

import (
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"assay/docs"
)

var (
	id        = regexp.MustCompile(`\bid="([^"]+)"`)
	reference = regexp.MustCompile(`\b(?:href|src)="([^"]+)"`)
)

// TestSite_LinksAndAnchorsExist follows each link of each rendered page.
func TestSite_LinksAndAnchorsExist(t *testing.T) {
	site, err := docs.Site()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string][]string{}
	for name, content := range site {
		for _, m := range id.FindAllStringSubmatch(string(content), -1) {
			if slices.Contains(ids[name], m[1]) {
				t.Errorf("%s has two elements with the id %s", name, m[1])
			}
			ids[name] = append(ids[name], m[1])
		}
	}
	pages := 0
	for name, content := range site {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		pages++
		for _, m := range reference.FindAllStringSubmatch(string(content), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to, anchor, _ := strings.Cut(m[1], "#")
			file := name
			if to != "" {
				file = path.Join(path.Dir(name), to)
			}
			if _, ok := site[file]; !ok {
				t.Errorf("%s links to %s, which the site lacks", name, m[1])
			} else if anchor != "" && !slices.Contains(ids[file], anchor) {
				t.Errorf("%s links to %s, which has no such anchor", name, m[1])
			}
		}
	}
	if want := len(pagesOf(t)); pages != want {
		t.Errorf("got %d pages, want %d", pages, want)
	}
}

// pagesOf returns the pages below docs/.
func pagesOf(t *testing.T) (names []string) {
	walk(t, "docs", ".md", func(path string) { names = append(names, path) })
	return names
}

// TestSite_LLMsTxtListsEveryPage compares llms.txt with the navigation, which lists every page.
func TestSite_LLMsTxtListsEveryPage(t *testing.T) {
	site, err := docs.Site()
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^- \[[^]]+\]\(([^)]+)\)`).FindAllStringSubmatch(string(site["llms.txt"]), -1) {
		listed = append(listed, m[1])
		if source, ok := site[m[1]]; !ok || !strings.HasPrefix(string(source), "# ") {
			t.Errorf("llms.txt links to %s: got no page, want a Markdown page of the site", m[1])
		}
	}
	slices.Sort(listed)
	var want []string
	for _, name := range pagesOf(t) {
		// The index does not list itself.
		if name = strings.TrimPrefix(name, "docs/"); name != "README.md" {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		t.Errorf("llms.txt: got the pages\n%s\nwant\n%s", strings.Join(listed, "\n"), strings.Join(want, "\n"))
	}
	if text := string(site["llms.txt"]); !strings.HasPrefix(text, "# Assay\n\n> ") || !strings.Contains(text, "\n## Reference\n") {
		t.Errorf("llms.txt: got\n%.300s\nwant a title, a summary and the groups of the navigation", text)
	}
}

func TestSite_SearchIndexHasEverySection(t *testing.T) {
	site, err := docs.Site()
	if err != nil {
		t.Fatal(err)
	}
	index := string(site["search-index.js"])
	for _, want := range []string{
		`"page":"how-to/currencies.html#safeguards","title":"Take quotes in other currencies","heading":"Safeguards","text":"A run uses one set of rates`,
		`MARKET_PRICE_SCHEDULE none schedule of runs`,
	} {
		if !strings.Contains(index, want) {
			t.Errorf("the search index lacks %s", want)
		}
	}
}

// TestSite_SearchShowsUserPagesFirst runs the search of the site with Node.js. Each query matches a page
// for contributors better, and more than 12 pages for users.
func TestSite_SearchShowsUserPagesFirst(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("this test needs Node.js: %v", err)
	}
	site, err := docs.Site()
	if err != nil {
		t.Fatal(err)
	}
	const element = `const element = { dataset: {}, form: { addEventListener() {} }, addEventListener() {} };
const document = { body: element, getElementById: () => element, addEventListener() {} };
`
	for _, query := range []string{"providers", "refresh", "ledger"} {
		script := element + string(site["search-index.js"]) + string(site["search.js"]) + "console.log(find('" + query + "').map((f) => f.s.page).join('\\n'));"
		cmd := exec.CommandContext(t.Context(), node)
		cmd.Stdin = strings.NewReader(script)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("search for %s: got error %v, want none\n%s", query, err, out)
		}
		found := strings.Fields(string(out))
		if len(found) != 12 {
			t.Errorf("search for %s: got %d pages, want 12: %q", query, len(found), found)
		}
		for _, page := range found {
			if strings.HasPrefix(page, "contribute/") || strings.HasPrefix(page, "adr/") {
				t.Errorf("search for %s: got %s, want only pages for users, because more than 12 match", query, page)
			}
		}
	}
}
