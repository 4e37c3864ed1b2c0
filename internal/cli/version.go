package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// versionCmd shows the version of the program.
type versionCmd struct{}

func (*versionCmd) examples() []example {
	return []example{
		{"version", "show the version, the commit and the Go release"},
		{"version --json", "the same as JSON"},
	}
}

// build describes the source and the toolchain of the program.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // empty when built outside of a checkout
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// readBuild reads what the Go toolchain stored in the program.
func readBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, set := range info.Settings {
		switch set.Key {
		case "vcs.revision":
			b.Commit = set.Value
		case "vcs.modified":
			b.Modified = set.Value == "true"
		}
	}
	return b
}

// Run shows the version.
func (c *versionCmd) Run(s *session) error {
	b := readBuild()
	return s.out.result(b, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "assay %s (%s, %s)\n", b.Version, b.Go, b.Platform)
		if b.Commit != "" {
			_, _ = fmt.Fprintf(w, "commit %s\n", b.Commit)
		}
	})
}
