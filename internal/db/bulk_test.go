package db_test

import (
	"errors"
	"fmt"
	"testing"

	"assay/internal/db"
	"assay/internal/db/dbtest"
)

const settingColumns = "name text, value text"

var settingsBulk = db.NewBulk(`INSERT INTO setting (name, value) `, settingColumns, "")

// PostgreSQL gets many rows with COPY and few rows as arrays.
func TestWriteRows_InsertsAnyNumberOfRowsInTheTransaction(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		insert := func(n int, fault error) error {
			return f.DB.InTx(f.Context(), func(tx *db.Tx) error {
				rows := db.NewTable(settingColumns, n)
				for i := range n {
					rows.Text(fmt.Sprint("test ", n, " ", i), "'\\\t\n\"é")
				}
				written, err := tx.WriteRows(settingsBulk, rows)
				if err == nil {
					f.Is(fmt.Sprint("written rows of ", n), written, int64(n))
					err = fault
				}
				return err
			})
		}
		stored := func() (n int64) {
			f.Must(f.DB.Read.QueryRowContext(f.Context(), `SELECT count(*) FROM setting WHERE name LIKE 'test %' AND value = $1`, "'\\\t\n\"é").Scan(&n))
			return n
		}
		want := int64(0)
		for _, n := range []int{0, 1, 63, 64, 200} {
			f.Is("the transaction returns the error of the function", errors.Is(insert(n, errTest), errTest), true)
			f.Is("rows after a rollback", stored(), want)
			f.Must(insert(n, nil))
			want += int64(n)
			f.Is("rows after a commit", stored(), want)
			if n > 0 {
				f.Is("the same rows again are duplicates", db.IsDuplicate(insert(n, nil)), true)
			}
		}
	})
}
