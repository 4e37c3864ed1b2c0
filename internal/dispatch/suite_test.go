package dispatch_test

import (
	"testing"

	"assay/internal/dispatch"
	"assay/internal/dispatch/dispatchtest"
)

func TestLocal_PassesTheDispatcherSuite(t *testing.T) {
	dispatchtest.Run(t, func(testing.TB) dispatchtest.Cluster {
		return func(o dispatchtest.Options) dispatch.Dispatcher {
			return dispatch.NewLocal(dispatch.LocalOptions{
				Workers: o.Workers, Tasks: o.Tasks, Sweep: o.Sweep, Now: o.Now, Logger: o.Logger,
			})
		}
	})
}
