package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const root = "../.."

// commitTime is the time of the commit that tests build.
var commitTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// copySource copies the source without build results, and adds a section for 1.2.3 to the
// changelog.
func copySource(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && (name == ".git" || name == "bin" || name == "dist" || name == "data" || name == "node_modules" || name == "testdata" && rel != "testdata"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular(), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if rel == "CHANGELOG.md" {
			data = bytes.Replace(data, []byte("## [Unreleased]"), []byte("## [1.2.3] - 2026-03-01"), 1)
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// release builds 1.2.3 from a copy of the source in a new directory and returns the directory of
// the results.
func release(t *testing.T, cache string, only ...platform) string {
	t.Helper()
	source := t.TempDir()
	copySource(t, source)
	out := filepath.Join(t.TempDir(), "dist")
	o := options{Source: source, Out: out, Version: "1.2.3", Commit: "0123456789abcdef", Time: commitTime, Platforms: only, Cache: cache, Log: t.Output()}
	if err := build(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return out
}

// contents returns the files of a directory by name.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, e := range entries {
		if found[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// TestRelease_IsTheSameFromEveryDirectory builds one platform twice. With ASSAY_LONG=1 it builds all
// platforms twice, with a new compiler cache for each build.
func TestRelease_IsTheSameFromEveryDirectory(t *testing.T) {
	only, caches := []platform{{"linux", "amd64"}}, []string{"", ""}
	if os.Getenv("ASSAY_LONG") == "1" {
		only, caches = platforms, []string{t.TempDir(), t.TempDir()}
	}
	dir := release(t, caches[0], only...)
	first, second := contents(t, dir), contents(t, release(t, caches[1], only...))
	for name, data := range first {
		if !bytes.Equal(data, second[name]) {
			t.Errorf("%s differs between two builds, want equal bytes", name)
		}
	}
	if len(first) != len(second) || len(first) < 3+2*len(only) {
		t.Fatalf("two builds: got %d and %d files, want equal numbers and all archives", len(first), len(second))
	}
	checkSums(t, first)
	for _, p := range only {
		name := "assay_1.2.3_" + p.String()
		files := unpack(t, first, name, p)
		checkArchive(t, files)
		checkReadme(t, string(files["README.md"]), files)
		if unit := files["deploy/systemd/assay.service"]; (p.os == "linux") != strings.Contains(string(unit), "ExecStart=") {
			t.Errorf("archive of %s: got the systemd unit %q, want one only on Linux", p, unit)
		}
		checkSBOM(t, first[name+".cdx.json"], files)
		if p == host() {
			checkVersion(t, files["assay"])
		}
		if p.os == "linux" {
			checkDeb(t, filepath.Join(dir, "assay_1.2.3_"+p.arch+".deb"), p, files["assay"])
		}
	}
}

func checkSums(t *testing.T, files map[string][]byte) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(string(files["SHA256SUMS"])), "\n")
	if len(lines) != len(files)-1 {
		t.Errorf("SHA256SUMS: got %d lines, want one for each of %d other files", len(lines), len(files)-1)
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if have := sha256.Sum256(files[name]); hex.EncodeToString(have[:]) != sum {
			t.Errorf("SHA256SUMS has a wrong sum of %s, want the sum of the file", name)
		}
	}
}

// unpack returns the files of an archive. The program is "assay" on all platforms.
func unpack(t *testing.T, dist map[string][]byte, name string, p platform) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	add := func(entry string, r io.Reader, at time.Time) {
		rest, inside := strings.CutPrefix(entry, name+"/")
		if !inside || !at.Equal(commitTime) {
			t.Errorf("%s: got the entry %s of %v, want it in the directory of the archive, with the time of the commit", name, entry, at)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(rest, ".exe")] = data
	}
	if p.os == "windows" {
		data := dist[name+".zip"]
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, r, f.Modified)
		}
		return files
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(dist[name+".tar.gz"]))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		add(h.Name, r, h.ModTime)
	}
}

func checkArchive(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name, want := range map[string]string{
		"LICENSE": "Apache License", "README.md": "Assay", "CHANGES.md": "## [1.2.3] - 2026-03-01",
		"completions/assay.bash": "complete -o filenames", "completions/_assay": "#compdef assay",
		"completions/assay.fish": "complete -c assay", "completions/assay.ps1": "Register-ArgumentCompleter",
		"man/assay.1": `.TH assay 1 "March 2026" "assay 1.2.3" "Assay"`,
	} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("%s lacks %q:\n%.300s", name, want, files[name])
		}
	}
	for _, command := range []string{"serve", "refresh", "restore", "backup"} {
		if !regexp.MustCompile(`(?m)^\.SH assay ` + command).Match(files["man/assay.1"]) {
			t.Errorf("the manual lacks the section about the command %s", command)
		}
	}
}

// checkReadme checks that the README of an archive has no link into the source, and names exactly
// the files of the archive.
func checkReadme(t *testing.T, page string, files map[string][]byte) {
	t.Helper()
	if links := regexp.MustCompile(`\]\([^)]*\)`).FindAllString(page, -1); links != nil {
		t.Errorf("README.md: got the links %q, want none: the archive has no other pages", links)
	}
	for _, want := range []string{"./assay serve ", "/help"} {
		if !strings.Contains(page, want) {
			t.Errorf("README.md lacks %q", want)
		}
	}
	listed := []string{"README.md"}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`(?: \\(only for Linux\\))?").FindAllStringSubmatch(page, -1) {
		listed = append(listed, m[1])
		found := false
		for name := range files {
			found = found || name == m[1] || strings.HasSuffix(m[1], "/") && strings.HasPrefix(name, m[1])
		}
		if !found && !strings.Contains(m[0], "only for Linux") {
			t.Errorf("README.md lists %s, which the archive lacks", m[1])
		}
	}
	for name := range files {
		if !slices.ContainsFunc(listed, func(l string) bool { return l == name || strings.HasSuffix(l, "/") && strings.HasPrefix(name, l) }) {
			t.Errorf("README.md does not list %s", name)
		}
	}
}

// checkSBOM compares an SBOM with the build information of the program.
func checkSBOM(t *testing.T, text []byte, files map[string][]byte) {
	t.Helper()
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.Read(bytes.NewReader(files["assay"]))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, c := range *bom.Components {
		listed = append(listed, c.Name+" "+c.Version)
	}
	for _, m := range info.Deps {
		if !slices.Contains(listed, m.Path+" "+m.Version) {
			t.Errorf("the SBOM lacks the module %s %s", m.Path, m.Version)
		}
	}
	for _, name := range []string{"htmx.org", "idiomorph", "uplot"} {
		if !slices.ContainsFunc(listed, func(c string) bool { return strings.HasPrefix(c, name+" ") }) {
			t.Errorf("the SBOM lacks the script %s", name)
		}
	}
	if len(listed) < 20 || !slices.Contains(listed, "std "+strings.TrimPrefix(info.GoVersion, "go")) || bom.Metadata.Component.Version != "1.2.3" {
		t.Errorf("got an SBOM with the components %v, want at least 20, the Go release and version 1.2.3", listed)
	}
}

// checkVersion runs the program.
func checkVersion(t *testing.T, program []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assay")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	out := command(t, path, "version", "--json")
	var have struct{ Version, Commit, Go string }
	if err := json.Unmarshal([]byte(out), &have); err != nil || have.Version != "1.2.3" || have.Commit != "0123456789abcdef" || have.Go == "" {
		t.Errorf("assay version: got %s (error %v), want 1.2.3 with its commit", out, err)
	}
}

// checkDeb reads a Debian package with dpkg-deb.
func checkDeb(t *testing.T, path string, p platform, program []byte) {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed: it is part of Debian")
	}
	if have := command(t, "dpkg-deb", "--showformat=${Package} ${Version} ${Architecture}", "--show", path); have != "assay 1.2.3 "+p.arch {
		t.Errorf("got the package %q, want assay 1.2.3 %s", have, p.arch)
	}
	dir := t.TempDir()
	command(t, "dpkg-deb", "--raw-extract", path, dir)
	if have, err := os.ReadFile(filepath.Join(dir, "usr/bin/assay")); err != nil || !bytes.Equal(have, program) {
		t.Errorf("the program in the package differs from the program in the archive, want equal bytes (error %v)", err)
	}
	for name, mode := range map[string]fs.FileMode{
		"usr/bin/assay": 0o755, "usr/lib/systemd/system/assay.service": 0o644, "usr/lib/systemd/system/assay-backup.timer": 0o644,
		"usr/share/man/man1/assay.1.gz": 0o644, "etc/assay/assay.conf": 0o644, "DEBIAN/postinst": 0o755, "DEBIAN/prerm": 0o755,
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: got %+v (error %v), want mode %v", name, info, err, mode)
		}
	}
	if manual := command(t, "gzip", "--decompress", "--stdout", filepath.Join(dir, "usr/share/man/man1/assay.1.gz")); !strings.Contains(manual, ".TH assay 1") {
		t.Errorf("got the manual %.80q, want a manual with a title", manual)
	}
	if have, err := os.ReadFile(filepath.Join(dir, "DEBIAN/conffiles")); err != nil || strings.TrimSpace(string(have)) != "/etc/assay/assay.conf" {
		t.Errorf("got the configuration files %q (error %v), want /etc/assay/assay.conf", have, err)
	}
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: got error %v, want none\n%s", name, args, err, out)
	}
	return string(out)
}

func TestRelease_RefusesBadInputAndWritesNothing(t *testing.T) {
	taken := t.TempDir()
	for name, c := range map[string]struct{ version, out, want string }{
		"no SemVer":       {"v1", "dist", "is not a version"},
		"leading zero":    {"1.02.3", "dist", "is not a version"},
		"no section":      {"99.0.0", "dist", "CHANGELOG.md has no section [99.0.0]"},
		"existing result": {"", taken, "exists"},
	} {
		dir := t.TempDir()
		out := c.out
		if !filepath.IsAbs(out) {
			out = filepath.Join(dir, out)
		}
		err := build(context.Background(), options{Source: root, Out: out, Version: c.version, Platforms: platforms, Log: io.Discard})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: got the files %v after the failure (error %v), want none", name, left, err)
		}
	}
}
