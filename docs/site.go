// Package docs renders the documentation as a site of HTML pages with navigation and search.
// The site needs no server: all links are relative, and the search index is a script.
package docs

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed README.md tutorial how-to reference explanation contribute adr images
var sources embed.FS

var (
	//go:embed site/page.html
	layout string
	//go:embed site/site.css
	style []byte
	//go:embed site/search.js
	search []byte
	//go:embed site/mark.svg
	mark []byte
)

// section is a heading of a page with the text below it, for the search.
type section struct {
	Page    string `json:"page"` // path and anchor
	Title   string `json:"title"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// page is a rendered page.
type page struct {
	Title    string
	Body     template.HTML
	Root     string // relative path to the first page's directory, such as "../"
	Groups   []group
	sections []section
}

// group is a part of the navigation.
type group struct {
	Title string
	Links []navLink
}

type navLink struct {
	Title, Path string
	Current     bool
}

// Site returns the files of the site by path. The first page is index.html. The Markdown
// sources are part of it, for llms.txt.
func Site() (map[string][]byte, error) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	files := map[string][]byte{"site.css": style, "search.js": search, "mark.svg": mark}
	pages := map[string]*page{}
	err := fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		source, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(name, ".md") {
			if strings.HasSuffix(name, ".png") || strings.HasSuffix(name, ".svg") {
				files[name] = source
			}
			return nil
		}
		files[name] = source
		pages[name], err = render(markdown, name, source)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("render the documentation: %w", err)
	}
	layout, err := template.New("page").Parse(layout)
	if err != nil {
		return nil, err
	}
	var index []section
	groups := navigation(markdown)
	for _, name := range slices.Sorted(maps.Keys(pages)) { // a fixed order gives the same bytes each time
		p := pages[name]
		index = append(index, p.sections...)
		p.Groups = marked(groups, target(name))
		var out bytes.Buffer
		if err := layout.Execute(&out, p); err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
		files[target(name)] = out.Bytes()
	}
	files["llms.txt"] = llms(groups, pages)
	list, err := json.Marshal(index)
	files["search-index.js"] = append(append([]byte("const sections = "), list...), ";\n"...)
	return files, err
}

// target returns the path of the HTML page of a Markdown file.
func target(name string) string {
	if name == "README.md" {
		return "index.html"
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}

// render renders a Markdown file. A link to a file outside the site becomes plain text.
func render(markdown goldmark.Markdown, name string, source []byte) (*page, error) {
	root := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(&anchors{}))))
	p := &page{Root: strings.Repeat("../", strings.Count(name, "/"))}
	var outside []*ast.Link
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			anchor, _ := id.([]byte)
			heading := plain(n, source)
			if p.Title == "" {
				p.Title = heading
			}
			p.sections = append(p.sections, section{Page: target(name) + "#" + string(anchor), Title: p.Title, Heading: heading})
		case *ast.Link:
			to, inside := resolve(name, string(n.Destination))
			n.Destination = []byte(to)
			if !inside {
				outside = append(outside, n)
			}
		default:
			if isText(n) && len(p.sections) > 0 {
				last := &p.sections[len(p.sections)-1]
				last.Text = strings.TrimSpace(last.Text + " " + plain(n, source))
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	for _, link := range outside {
		parent := link.Parent()
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			parent.InsertBefore(parent, link, child)
		}
		parent.RemoveChild(parent, link)
	}
	var body bytes.Buffer
	err = markdown.Renderer().Render(&body, source, root)
	p.Body = template.HTML(accessible.Replace(body.String())) //nolint:gosec // from the documentation of this repository
	return p, err
}

// accessible adds a tabindex to blocks that may be wider than the window, so that the keyboard can
// scroll them. It also turns the empty header cells of columns without a name into ordinary cells.
var accessible = strings.NewReplacer(
	"<th></th>", "<td></td>",
	"<pre>", `<pre tabindex="0">`,
	"<table>", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`, "</table>", "</table></div>",
)

// isText reports whether a node is a block of text, such as a row of a table. Such blocks do
// not contain each other.
func isText(n ast.Node) bool {
	switch n.Kind().String() {
	case "Paragraph", "TextBlock", "TableRow", "TableHeader", "FencedCodeBlock":
		return true
	}
	return false
}

// plain returns the text of a node without markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	if n.Type() == ast.TypeBlock && !n.HasChildren() {
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			b.Write(line.Value(source))
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		default:
			if !entering && n.Kind().String() == "TableCell" {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// resolve returns the destination of a link on a page. inside is false if the site lacks the destination.
func resolve(name, to string) (resolved string, inside bool) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Path == "" {
		return to, err == nil
	}
	file := path.Join(path.Dir(name), u.Path)
	if _, err := fs.Stat(sources, file); err != nil || !strings.HasSuffix(file, ".md") {
		return to, false
	}
	u.Path = strings.TrimSuffix(u.Path, path.Base(u.Path)) + path.Base(target(file))
	return u.String(), true
}

// navigation returns the links of the index page, by heading.
func navigation(markdown goldmark.Markdown) (groups []group) {
	source, _ := sources.ReadFile("README.md") // embedded
	root := markdown.Parser().Parse(text.NewReader(source))
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			groups = append(groups, group{Title: plain(n, source)})
		case *ast.Link:
			if to := string(n.Destination); strings.HasSuffix(to, ".md") && len(groups) > 0 {
				last := &groups[len(groups)-1]
				last.Links = append(last.Links, navLink{Title: plain(n, source), Path: target(to)})
			}
		}
		return ast.WalkContinue, nil
	})
	return groups
}

// marked returns the navigation with the link to the current page marked.
func marked(groups []group, current string) (out []group) {
	for _, g := range groups {
		g.Links = slices.Clone(g.Links)
		for i := range g.Links {
			g.Links[i].Current = g.Links[i].Path == current
		}
		out = append(out, g)
	}
	return out
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors derives the ids of headings as code hosts do, so that links work there and on the site.
type anchors struct{}

func (*anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(string(value)), ""), " ", "-")
	return []byte(id)
}

func (*anchors) Put([]byte) {}
