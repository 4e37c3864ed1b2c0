package view_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/store"
	"assay/internal/view"
)

// described is a source that is never asked.
type described struct{ provider.Description }

func (d described) Describe() provider.Description { return d.Description }

func (d described) Fetch(context.Context, provider.Call, provider.Sink) (provider.Answer, error) {
	return provider.Answer{}, nil
}

func TestDebug_ShowsAllInstancesAndTheirWorkWhicheverIsAsked(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	sim := refresh.Askable{Source: "sim", File: "f"}
	w.tx(func(tx *store.Tx) error {
		for n, asks := range [][]refresh.Askable{{sim, {Source: "sim", File: "g"}}, {sim, {Source: "list"}}} {
			i := refresh.Instance{Owner: fmt.Sprint("host-", n), Version: "v1", Asks: asks, StartedAt: w.now.Add(time.Duration(n) * time.Second)}
			if err := tx.Register(i); err != nil {
				return err
			}
		}
		id, _, err := tx.InsertJob(refresh.Job{Kind: refresh.Bulk})
		if err != nil {
			return err
		}
		if err := tx.InsertUnits([]refresh.Unit{{JobID: id, Source: "sim", AppID: catalog.CS2, File: "f", State: refresh.UnitPending}}); err != nil {
			return err
		}
		_, err = tx.ClaimUnit(refresh.Claim{Source: "sim", Owner: "host-1"})
		return err
	})
	reader := view.NewReader(view.Options{
		Store: w.store, Owner: "host-0", Currency: "USD", Now: func() time.Time { return w.now },
		Sources:   []provider.Source{described{provider.Description{Name: "sim"}}},
		Scheduled: func() map[string]time.Time { return nil },
	})
	jobs, err := reader.JobDebug(t.Context())
	w.must(err)
	for n, i := range jobs.Instances {
		i.BeatAt = nil
		want := []view.Instance{
			{Owner: "host-0", Version: "v1", Answering: true, StartedAt: w.now, Sources: []string{"sim"}},
			{Owner: "host-1", Version: "v1", StartedAt: w.now.Add(time.Second), Sources: []string{"list", "sim"}, Working: 1},
		}[n]
		if fmt.Sprint(i) != fmt.Sprint(want) {
			t.Errorf("instance %+v, want %+v", i, want)
		}
	}
	work := []view.Worker{{Owner: "host-1", Kind: "fetch", Work: "sim f", Since: w.now, Token: 1}}
	if fmt.Sprint(jobs.Workers) != fmt.Sprint(work) {
		t.Errorf("work %+v", jobs.Workers)
	}
	sources, err := reader.ProviderDebug(t.Context())
	w.must(err)
	if s := sources.Sources[0]; fmt.Sprint(s.Instances, s.Workers) != fmt.Sprint([]string{"host-0", "host-1"}, work) {
		t.Errorf("source %+v", s)
	}
}
