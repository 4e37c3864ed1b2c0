// Command release builds the files of a release: archives and Debian packages with the
// program, its manual and shell completions, one SBOM each, the notes, and SHA256SUMS.
// `make release` runs it. The same source, version and Go release give the same bytes in
// every directory.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// platforms are the platforms of a release.
var platforms = []platform{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

// platform is a target of the Go compiler.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := options{Log: os.Stderr}
	var only string
	var stamp int64
	flag.StringVar(&o.Source, "source", ".", "directory of the source")
	flag.StringVar(&o.Out, "out", "dist", "directory of the results, which must not exist")
	flag.StringVar(&o.Version, "version", "", "version to build, such as 0.1.0; it needs a section in CHANGELOG.md. Empty: a snapshot of Unreleased")
	flag.StringVar(&o.Commit, "commit", "", "commit of the source")
	flag.Int64Var(&stamp, "time", 0, "time of the commit, in seconds since 1970")
	flag.StringVar(&only, "only", "", "comma-separated platforms such as linux_amd64; default: all")
	flag.Parse()
	var err error
	if o.Source, err = filepath.Abs(o.Source); err != nil {
		return err
	}
	o.Time = time.Unix(stamp, 0).UTC()
	for _, p := range platforms {
		if only == "" || strings.Contains(","+only+",", ","+p.String()+",") {
			o.Platforms = append(o.Platforms, p)
		}
	}
	if len(o.Platforms) == 0 {
		return fmt.Errorf("unknown platform %q: choose from %v", only, platforms)
	}
	return build(ctx, o)
}

// host returns the platform of this process.
func host() platform { return platform{runtime.GOOS, runtime.GOARCH} }
