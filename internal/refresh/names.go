package refresh

import (
	"context"
	"errors"

	"assay/internal/provider"
)

// maxConsecutiveFailures is how many calls of a unit may fail in a row before the rest is abandoned:
// then the names are not the reason.
const maxConsecutiveFailures = 3

// fetchNames makes the calls of a unit of names. If only some have a response, the unit keeps
// the names of those, and the others become units of their own, in r.remaining. So a response is
// never requested twice, and a name without a response fails alone. An error means that no
// call had a response.
func (r *response) fetchNames(ctx context.Context, f *fetcher, src provider.Provider, unit *Unit, meter *provider.Meter) error {
	d := src.Describe()
	size := max(d.BatchSize, 1)
	whole := &joined{response: r}
	var responded, failed []string
	var last error // of the failed calls; one that was not sent hides none
	for from, row := 0, 0; from < len(unit.Names); from += size {
		names := unit.Names[from:min(from+size, len(unit.Names))]
		ans, err := src.Fetch(ctx, provider.Call{AppID: unit.AppID, Names: names, Meter: meter}, whole)
		if err == nil {
			whole.flush(ans.ProviderTime)
			if r.succeeded != nil {
				r.succeeded()
			}
			r.silent = append(r.silent, ans.Silent...)
			responded, row = append(responded, names...), 0
			continue
		}
		whole.Restart()
		if last == nil || !isNotSent(err) {
			last = err
		}
		if row++; row == maxConsecutiveFailures || isProviderFailure(err) {
			r.addRemaining(ctx, f, *unit, unit.Names[from:], err)
			break
		}
		failed = append(failed, names...)
	}
	if len(responded) == 0 {
		return last
	}
	if len(failed) > 0 {
		r.addRemaining(ctx, f, *unit, failed, last)
	}
	unit.Names = responded
	r.expect(d, "")
	return nil
}

// addRemaining stores that some names of a unit had no response.
func (r *response) addRemaining(ctx context.Context, f *fetcher, unit Unit, names []string, err error) {
	unit.Names = names
	f.classifyFailure(&unit, err)
	if ctx.Err() != nil {
		unit.State, unit.ErrorKind, unit.Error = UnitPending, "", "" // the process stops
	}
	r.remaining = append(r.remaining, unit)
}

// isNotSent reports whether a call was not sent because its provider failed too often
// before.
func isNotSent(err error) bool { return provider.KindOf(err) == provider.KindBreaker }

// isProviderFailure reports whether a failure would occur for any other name too.
func isProviderFailure(err error) bool {
	var pe *provider.Error
	if !errors.As(err, &pe) {
		return false
	}
	switch pe.Kind {
	case provider.KindAuth, provider.KindBlocked, provider.KindCancelled:
		return true
	default:
		return pe.Deferred()
	}
}
