package refresh

import (
	"context"
	"errors"

	"assay/internal/provider"
)

// maxConsecutiveFailures is the number of consecutive failed calls after which fetchNames
// abandons the rest of a unit. Single names are then probably not the cause.
const maxConsecutiveFailures = 3

// fetchNames fetches the names of a unit in several calls. If only some calls succeed, the
// unit keeps the names of these calls. The other names become units in r.remaining. So no
// successful call is repeated, and one failing name does not affect the others. fetchNames
// returns an error if no call succeeded.
func (r *quoteSink) fetchNames(ctx context.Context, f *fetcher, src provider.Provider, unit *FetchUnit, meter *provider.Meter) error {
	d := src.Describe()
	size := max(d.BatchSize, 1)
	whole := &joined{quoteSink: r}
	var responded, failed []string
	var last error // the last error; a call that was not sent does not replace another error
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

// addRemaining adds a unit of names that had no response.
func (r *quoteSink) addRemaining(ctx context.Context, f *fetcher, unit FetchUnit, names []string, err error) {
	unit.Names = names
	f.classifyFailure(&unit, err)
	if ctx.Err() != nil {
		unit.State, unit.ErrorKind, unit.Error = UnitPending, "", "" // the process stops
	}
	r.remaining = append(r.remaining, unit)
}

// isNotSent reports whether a circuit breaker prevented a call.
func isNotSent(err error) bool { return provider.KindOf(err) == provider.KindBreaker }

// isProviderFailure reports whether a request for any other name would fail in the same way.
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
