//go:build unix

package river_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/dispatch"
	"assay/internal/dispatch/dispatchtest"
	"assay/internal/dispatch/river"
)

// cluster returns a function that creates dispatchers on a new database.
func cluster(tb testing.TB) (url string, open dispatchtest.Cluster) {
	tb.Helper()
	url = database(tb)
	return url, clusterOn(tb, url)
}

// clusterOn returns a function that creates dispatchers on the given database.
func clusterOn(tb testing.TB, url string) dispatchtest.Cluster {
	tb.Helper()
	if err := river.Migrate(tb.Context(), url, discard()); err != nil {
		tb.Fatal(err)
	}
	var n atomic.Int64
	return func(o dispatchtest.Options) dispatch.Dispatcher {
		if o.Now == nil {
			o.Now = time.Now
		}
		d, err := river.New(tb.Context(), river.Options{
			URL: url, ID: fmt.Sprint("instance-", n.Add(1)), Workers: o.Workers, Tasks: o.Tasks,
			Sweep: o.Sweep, Now: o.Now, Logger: o.Logger,
		})
		if err != nil {
			tb.Fatal(err)
		}
		return d
	}
}

func TestRiver_PassesTheDispatcherSuite(t *testing.T) {
	dispatchtest.Run(t, func(tb testing.TB) dispatchtest.Cluster {
		_, open := cluster(tb)
		return open
	})
}
