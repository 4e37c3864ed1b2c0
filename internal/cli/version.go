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
		{"version --json", "print it as JSON"},
	}
}

// `make release` sets these with the linker.
//
//nolint:gochecknoglobals // the linker can set only package variables
var stampedVersion, stampedCommit string

// build describes the program's source and toolchain.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // empty if built outside of a checkout
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// readBuild reads the build information of the program.
func readBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if stampedVersion != "" {
		b.Version, b.Commit = stampedVersion, stampedCommit
		return b
	}
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

func (c *versionCmd) Run(s *session) error {
	b := readBuild()
	return s.out.result(b, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "assay %s (%s, %s)\n", b.Version, b.Go, b.Platform)
		if b.Commit != "" {
			_, _ = fmt.Fprintf(w, "commit %s\n", b.Commit)
		}
	})
}
