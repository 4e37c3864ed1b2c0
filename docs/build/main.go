// Command build writes the documentation as a site: go run ./docs/build DIR.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"assay/docs"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./docs/build DIR")
		os.Exit(2)
	}
	err := write(os.Args[1])
	if err == nil {
		_, err = fmt.Fprintln(os.Stdout, "docs: open", filepath.Join(os.Args[1], "index.html"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	files, err := docs.Site()
	if err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
