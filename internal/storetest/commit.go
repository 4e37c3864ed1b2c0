package storetest

import (
	"errors"
	"fmt"

	"assay/internal/refresh"
)

var errTest = errors.New("as the test wants it")

func otherCurrency(f *fixture) {
	f.must(refresh.SetCurrency(f.Context(), f.s, "EUR"))
	f.must(refresh.SetCurrency(f.Context(), f.s, "EUR"))
	if err := refresh.SetCurrency(f.Context(), f.s, "USD"); err == nil {
		f.Error("took another currency")
	}
	f.must(refresh.SetCurrency(f.Context(), f.s, "EUR"))
}

func largeLists(f *fixture) {
	const n = 12_000 // more than the parameters of a statement of any table
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("name ", i)
	}
	ids := f.items(names...)
	userKey := f.own("u", ids...)
	units := make([]refresh.Unit, 3_000)
	for i := range units {
		units[i] = unit("s", "")
		units[i].State = refresh.UnitFailed
	}
	id := f.plan(refresh.Bulk, 1, units...)
	f.storeVerdict(id)
	f.estimate(f.claimBatch(), 10)
	f.is("updated", f.job(id).Counts.Updated, int64(n))
	list, err := refresh.JobUnits(f.Context(), f.s, id)
	f.must(err)
	f.is("units", len(list), 3_000)
	f.is("rows", len(f.values(userKey)), n)
}
