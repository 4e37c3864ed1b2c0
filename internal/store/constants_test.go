package store

import (
	"strconv"
	"testing"

	"assay/internal/catalog"
	"assay/internal/pricing"
	"assay/internal/refresh"
)

func TestStatements_HaveTheConstantsOfTheOthers(t *testing.T) {
	if want := strconv.FormatInt(refresh.MaxMissingRetry.Microseconds(), 10); maxMissingRetry != want {
		t.Errorf("maxMissingRetry is %s, want %s", maxMissingRetry, want)
	}
	if want := strconv.Itoa(catalog.Buckets); buckets != want {
		t.Errorf("buckets is %s, want %s", buckets, want)
	}
	if want := "'" + string(pricing.Awaiting) + "'"; awaiting != want {
		t.Errorf("awaiting is %s, want %s", awaiting, want)
	}
	if want := "status = " + strconv.Itoa(int(pricing.NoPrice)); unpriced != want {
		t.Errorf("unpriced is %s, want %s", unpriced, want)
	}
}
