package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"time"
)

// file is a file of an archive.
type file struct {
	name string
	data []byte
	mode os.FileMode // 0 means 0644
}

func (f file) permissions() os.FileMode {
	if f.mode == 0 {
		return 0o644
	}
	return f.mode
}

// writeTar writes files below a directory of an archive. All files have the same time and no owner,
// so that the archive depends only on their content.
func writeTar(path, dir string, files []file, at time.Time) error {
	return writeFile(path, func(w io.Writer) error {
		packed := gzip.NewWriter(w)
		t := tar.NewWriter(packed)
		for _, f := range files {
			header := &tar.Header{Name: dir + "/" + f.name, Mode: int64(f.permissions()), Size: int64(len(f.data)), ModTime: at, Format: tar.FormatPAX}
			if err := t.WriteHeader(header); err != nil {
				return err
			}
			if _, err := t.Write(f.data); err != nil {
				return err
			}
		}
		return errors.Join(t.Close(), packed.Close())
	})
}

// writeZip is like writeTar. It writes the zip archives for Windows.
func writeZip(path, dir string, files []file, at time.Time) error {
	return writeFile(path, func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, f := range files {
			header := &zip.FileHeader{Name: dir + "/" + f.name, Method: zip.Deflate, Modified: at}
			header.SetMode(f.permissions())
			entry, err := z.CreateHeader(header)
			if err != nil {
				return err
			}
			if _, err := entry.Write(f.data); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
