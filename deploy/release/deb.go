package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
)

// writeDeb writes the Debian package that deploy/nfpm.yaml describes.
func writeDeb(o options, p platform, dist, binary string, extra []file) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(dist), "deb-")
	if err != nil {
		return err
	}
	for _, f := range extra {
		if f.name == "man/assay.1" { // Debian compresses manuals
			if f, err = compressed(f); err != nil {
				return err
			}
		}
		path := filepath.Join(dir, f.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, f.data, 0o644)); err != nil {
			return err
		}
	}
	values := map[string]string{"ARCH": p.arch, "VERSION": o.Version, "BINARY": binary, "SOURCE": o.Source, "EXTRA": dir}
	config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(o.Source, "deploy/nfpm.yaml"), func(name string) string { return values[name] })
	if err != nil {
		return err
	}
	info, err := config.Get("deb")
	if err != nil {
		return err
	}
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove} {
		*script = filepath.Join(o.Source, *script) // nfpm expands variables in contents only
	}
	info.MTime = o.Time
	for _, c := range info.Contents {
		if c.FileInfo != nil {
			c.FileInfo.MTime = o.Time
		}
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}
	return writeFile(filepath.Join(dist, deb.Default.ConventionalFileName(info)), func(w io.Writer) error { return deb.Default.Package(info, w) })
}

// compressed compresses a file with gzip. The header has no time, so equal files stay equal.
func compressed(f file) (file, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return f, err
	}
	_, err = w.Write(f.data)
	err = errors.Join(err, w.Close()) // writes the rest
	return file{name: f.name + ".gz", data: out.Bytes(), mode: f.mode}, err
}
