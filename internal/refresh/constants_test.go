package refresh

import (
	"strconv"
	"testing"

	"assay/internal/pricing"
)

func TestSQL_ConstantsEqualGoConstants(t *testing.T) {
	if want := strconv.FormatInt(MaxMissingRetry.Microseconds(), 10); maxMissingRetryMicros != want {
		t.Errorf("maxMissingRetry = %s, want %s", maxMissingRetryMicros, want)
	}
	if want := "'" + string(pricing.Awaiting) + "'"; awaiting != want {
		t.Errorf("awaiting = %s, want %s", awaiting, want)
	}
	if want := "status = " + strconv.Itoa(int(pricing.NoPrice)); Unpriced != want {
		t.Errorf("Unpriced = %s, want %s", Unpriced, want)
	}
}
