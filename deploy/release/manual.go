package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// shells lists the shells with completions, each with the file name that it expects.
var shells = []struct{ name, file string }{
	{"bash", "assay.bash"}, {"zsh", "_assay"}, {"fish", "assay.fish"}, {"powershell", "assay.ps1"},
}

// manuals returns the manual page and the completions. The program prints the completions.
func manuals(ctx context.Context, o options, binary string) ([]file, error) {
	page, err := os.ReadFile(filepath.Join(o.Source, "docs/reference/cli.md"))
	if err != nil {
		return nil, err
	}
	files := []file{{name: "man/assay.1", data: manual(page, o)}}
	for _, shell := range shells {
		script, err := exec.CommandContext(ctx, binary, "completion", shell.name).Output()
		if err != nil {
			return nil, fmt.Errorf("completions of %s: %w", shell.name, err)
		}
		files = append(files, file{name: "completions/" + shell.file, data: script})
	}
	return files, nil
}

// manual converts the reference of the command line to a manual page. A test of internal/cli
// compares the reference with the help of every command.
func manual(reference []byte, o options) []byte {
	_, body, _ := bytes.Cut(reference, []byte("\n\n")) // without the title,
	_, body, _ = bytes.Cut(body, []byte("\n\n"))       // and how to update the page
	title := fmt.Sprintf("%% assay 1 %q %q %q\n\n# NAME\n\nassay - keeps the prices of game items up to date\n\n# DESCRIPTION\n",
		o.Time.Format("January 2006"), "assay "+o.Version, "Assay")
	links := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`) // a manual page has no links
	return md2man.Render(links.ReplaceAll(append([]byte(title), body...), []byte("$1")))
}

// changes returns one section of the changelog.
func changes(source, section string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(source, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	from := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(section) + `\].*$`).FindIndex(text)
	if from == nil {
		return nil, fmt.Errorf("CHANGELOG.md has no section [%s]: rename Unreleased and add the date", section)
	}
	notes := text[from[0]:]
	if next := bytes.Index(notes[3:], []byte("\n## ")); next >= 0 {
		notes = notes[:3+next+1]
	}
	return append(bytes.TrimSpace(notes), '\n'), nil
}
