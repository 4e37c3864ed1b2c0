package store

import (
	"strconv"
	"testing"

	"assay/internal/catalog"
	"assay/internal/refresh"
)

func TestStatements_HaveTheConstantsOfTheOthers(t *testing.T) {
	if want := strconv.FormatInt(refresh.MaxMissingRetry.Microseconds(), 10); maxMissingRetry != want {
		t.Errorf("maxMissingRetry is %s, want %s", maxMissingRetry, want)
	}
	if want := strconv.Itoa(catalog.Buckets); buckets != want {
		t.Errorf("buckets is %s, want %s", buckets, want)
	}
}
