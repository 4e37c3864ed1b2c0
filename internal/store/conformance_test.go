package store_test

import (
	"path/filepath"
	"testing"

	"assay/internal/store"
	"assay/internal/store/storetest"
)

func TestSQLite_KeepsWhatAStorePromises(t *testing.T) {
	storetest.Run(t, func(tb testing.TB, o store.Options) *store.Store {
		o.Path = filepath.Join(tb.TempDir(), "assay.db")
		s, err := store.Open(tb.Context(), o)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := s.Close(); err != nil {
				tb.Error(err)
			}
		})
		return s
	})
}
