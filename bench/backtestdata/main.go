// Command backtestdata converts real prices to the file format of assay backtest.
//
// Usage: backtestdata DATA OUT. DATA contains the source files. OUT gets two folders: six (six
// markets at one time) and weekly (one market at 21 times).
package main

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "backtestdata:", err)
		os.Exit(1) //nolint:forbidigo // a separate program
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: backtestdata DATA OUT")
	}
	data, out := args[0], args[1]
	return errors.Join(
		convert(filepath.Join(data, "csgo_6market_2020-05_usd.csv.gz"), filepath.Join(out, "six"), func(column, price string) []string {
			return []string{"2020-05-15", column, price}
		}),
		convert(filepath.Join(data, "cs2_steam_weekly_2026_usd_cents.csv.gz"), filepath.Join(out, "weekly"), func(column, price string) []string {
			cents, err := strconv.Atoi(price)
			if err != nil {
				return nil
			}
			return []string{column, "steam", fmt.Sprintf("%d.%02d", cents/100, cents%100)}
		}),
	)
}

// convert converts a table of names and columns to rows. cell returns the time, market and
// price of one cell.
func convert(from, to string, cell func(column, price string) []string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o750); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(to, "prices.csv"))
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	err = rows(csv.NewReader(unzipped), w, cell)
	w.Flush()
	return errors.Join(err, w.Error(), f.Close())
}

func rows(r *csv.Reader, w *csv.Writer, cell func(column, price string) []string) error {
	header, err := r.Read()
	if err != nil {
		return err
	}
	header = append([]string(nil), header...)
	if err := w.Write([]string{"time", "market", "name", "price", "currency"}); err != nil {
		return err
	}
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i, price := range rec[1:] {
			if price == "" {
				continue
			}
			if c := cell(header[i+1], price); c != nil {
				if err := w.Write([]string{c[0], c[1], rec[0], c[2], "USD"}); err != nil {
					return err
				}
			}
		}
	}
}
