package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule says when something runs by itself. The zero Schedule never does.
type Schedule struct {
	text  string
	every time.Duration // 0: cron decides
	cron  cron.Schedule
}

// minEvery keeps a schedule from running more often than a run can end.
const minEvery = time.Second

var (
	errEvery    = errors.New(`want "every" and a duration from 1s to 8760h, such as "every 30m"`)
	errCron     = errors.New(`want a cron expression of five fields, such as "*/30 * * * *", or "every 30m"`)
	errNoRuns   = errors.New("names no moment that ever comes")
	errCronZone = errors.New("a time zone needs a space and five fields after it")
)

// ParseSchedule reads a cron expression of five fields ("30 4 * * *", taken as
// UTC unless CRON_TZ=Europe/Berlin stands before it), one of cron's names
// ("@hourly") or "every 30m".
func ParseSchedule(text string) (Schedule, error) {
	if length, ok := strings.CutPrefix(text, "every "); ok {
		every, err := time.ParseDuration(strings.TrimSpace(length))
		if err != nil || every < minEvery || every > maxDuration {
			return Schedule{}, errEvery
		}
		return Schedule{text: text, every: every}, nil
	}
	// The library slices out of range where no space follows a zone.
	if strings.Contains(text, "TZ=") && !strings.Contains(text, " ") {
		return Schedule{}, errCronZone
	}
	spec, err := cron.ParseStandard(text)
	if err != nil {
		return Schedule{}, fmt.Errorf("%w", errCron)
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
