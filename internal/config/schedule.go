package config

import (
	"errors"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// Schedule is when something runs by itself. The zero Schedule never does.
type Schedule struct {
	text  string
	every time.Duration // 0: cron decides
	cron  cron.Schedule
}

// minEvery is the shortest interval: a run takes longer.
const minEvery = time.Second

var (
	errEvery  = errors.New(`want "every" and a duration from 1s to 8760h, such as "every 30m"`)
	errCron   = errors.New(`want a cron expression of five fields, such as "*/30 * * * *", or "every 30m"`)
	errNoRuns = errors.New("never runs: there is no such date; correct the day or the month")
)

// ParseSchedule reads a cron expression of five fields ("30 4 * * *", taken as
// UTC unless CRON_TZ=Europe/Berlin stands before it), one of cron's names
// ("@hourly") or "every 30m". A time that the change to summer time skips runs an hour
// later on that day.
func ParseSchedule(text string) (Schedule, error) {
	if length, ok := strings.CutPrefix(text, "every "); ok {
		every, err := time.ParseDuration(strings.TrimSpace(length))
		if err != nil || every < minEvery || every > maxDuration {
			return Schedule{}, errEvery
		}
		return Schedule{text: text, every: every}, nil
	}
	// As in every cron, a day counts if it matches the day of month or the weekday.
	parser := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom)
	spec, err := parser.Parse(text)
	if err != nil {
		return Schedule{}, errCron
	}
	s := Schedule{text: text, cron: spec}
	if s.Next(time.Unix(0, 0)).IsZero() {
		return Schedule{}, errNoRuns
	}
	return s, nil
}

// Next returns the first moment after the given one, or the zero time for the
// zero Schedule. "every" counts from the zero time, not from the start of the
// process, so that a restart shifts nothing.
func (s Schedule) Next(after time.Time) time.Time {
	switch {
	case s.every > 0:
		return after.UTC().Truncate(s.every).Add(s.every)
	case s.cron != nil:
		return s.cron.Next(after.UTC())
	default:
		return time.Time{}
	}
}

// IsZero reports whether nothing is scheduled.
func (s Schedule) IsZero() bool { return s.every == 0 && s.cron == nil }

// String returns the schedule as it was written.
func (s Schedule) String() string { return s.text }
