package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options describe one release.
type options struct {
	Source, Out string
	Version     string // without "v"; empty for a snapshot
	Commit      string // may be empty
	Time        time.Time
	Platforms   []platform
	Cache       string // directory of the compiler's cache; empty means the user's
	Log         io.Writer
}

// snapshot is the version of a build without one. SemVer sorts it below all releases.
const snapshot = "0.0.0-dev"

// semver matches a version of https://semver.org without build metadata.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// build writes all files of a release to o.Out. It checks all input before it builds. It writes to a
// temporary directory and renames it at the end, so that o.Out is always complete.
func build(ctx context.Context, o options) (err error) {
	section := "Unreleased"
	if o.Version == "" {
		o.Version = snapshot
	} else {
		section = o.Version
	}
	if !semver.MatchString(o.Version) {
		return fmt.Errorf("%q is not a version: use MAJOR.MINOR.PATCH of https://semver.org, such as 0.1.0", o.Version)
	}
	if _, err := os.Lstat(o.Out); err == nil {
		return fmt.Errorf("%s exists: remove it, or choose another directory", o.Out)
	}
	notes, err := changes(o.Source, section)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(filepath.Clean(o.Out)), ".release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	binaries, dist := filepath.Join(work, "bin"), filepath.Join(work, "dist")
	if err := os.Mkdir(dist, 0o755); err != nil {
		return err
	}
	built := map[platform]string{}
	for _, p := range append([]platform{host()}, o.Platforms...) { // the completions come from a program that runs on this machine
		if built[p] != "" {
			continue
		}
		built[p] = filepath.Join(binaries, p.String())
		if err := compile(ctx, o, p, built[p]); err != nil {
			return err
		}
	}
	extra, err := manuals(ctx, o, built[host()])
	if err != nil {
		return err
	}
	extra = append(extra, file{name: "CHANGES.md", data: notes})
	for _, p := range o.Platforms {
		if err := writePlatform(o, p, dist, built[p], extra); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		if _, err := fmt.Fprintln(o.Log, "built", p); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dist, "CHANGES.md"), notes, 0o644); err != nil {
		return err
	}
	if err := writeSums(dist); err != nil {
		return err
	}
	return os.Rename(dist, o.Out)
}

// compile builds the program for a platform. The version and the commit are passed to the
// linker, not read from version control, so that a source archive gives the same bytes.
func compile(ctx context.Context, o options, p platform, to string) error {
	stamp := fmt.Sprintf("-s -w -buildid= -X assay/internal/cli.stampedVersion=%s -X assay/internal/cli.stampedCommit=%s", o.Version, o.Commit)
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp, "-o", to, "./cmd/assay")
	cmd.Dir = o.Source
	// Other settings of the caller's environment could change the result.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOFLAGS=") }),
		"CGO_ENABLED=0", "GOFLAGS=", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if o.Cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+o.Cache)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w\n%s", p, err, out)
	}
	return nil
}

// writePlatform writes the files of one platform.
func writePlatform(o options, p platform, dist, binary string, extra []file) error {
	name := "assay_" + o.Version + "_" + p.String()
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	bom, err := sbom(o, binary)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dist, name+".cdx.json"), bom, 0o644); err != nil {
		return err
	}
	executable := "assay"
	if p.os == "windows" {
		executable += ".exe"
	}
	files := append([]file{{name: executable, data: program, mode: 0o755}}, extra...)
	// The README of the source links to pages that the archive does not have.
	copied := []struct{ from, name string }{{"LICENSE", "LICENSE"}, {"deploy/release/archive-readme.md", "README.md"}}
	if p.os == "linux" {
		for _, unit := range []string{"assay.service", "assay-backup.service", "assay-backup.timer", "sysusers.conf", "assay.conf"} {
			copied = append(copied, struct{ from, name string }{"deploy/systemd/" + unit, "deploy/systemd/" + unit})
		}
	}
	for _, c := range copied {
		data, err := os.ReadFile(filepath.Join(o.Source, filepath.FromSlash(c.from)))
		if err != nil {
			return err
		}
		files = append(files, file{name: c.name, data: data})
	}
	if p.os == "windows" {
		return writeZip(filepath.Join(dist, name+".zip"), name, files, o.Time)
	}
	if err := writeTar(filepath.Join(dist, name+".tar.gz"), name, files, o.Time); err != nil {
		return err
	}
	if p.os == "linux" {
		return writeDeb(o, p, dist, binary, extra)
	}
	return nil
}

// writeSums writes the SHA-256 sums of all files, in the format of sha256sum.
func writeSums(dist string) error {
	entries, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dist, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dist, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
