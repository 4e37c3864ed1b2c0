package config

import (
	"errors"
	"strings"
	"time"

	"github.com/netresearch/go-cron"
)

// Schedule determines the times of scheduled runs. The zero Schedule has no runs.
type Schedule struct {
	text  string
	every time.Duration // interval; 0: use cron
	cron  cron.Schedule
}

// minEvery is the shortest interval of a schedule.
const minEvery = time.Second

var (
	errEvery  = errors.New(`want "every" and a duration from 1s to 8760h, such as "every 30m"`)
	errCron   = errors.New(`want a cron expression of five fields, such as "*/30 * * * *", or "every 30m"`)
	errNoRuns = errors.New("has a date that does not exist; correct the day or the month")
)

// ParseSchedule parses a cron expression with five fields such as "30 4 * * *", a cron name
// such as "@hourly", or an interval such as "every 30m". Cron expressions use UTC unless they
// begin with a time zone such as CRON_TZ=Europe/Berlin. If the change to summer time skips a
// time, the run starts an hour later on that day.
func ParseSchedule(text string) (Schedule, error) {
	if length, ok := strings.CutPrefix(text, "every "); ok {
		every, err := time.ParseDuration(strings.TrimSpace(length))
		if err != nil || every < minEvery || every > maxDuration {
			return Schedule{}, errEvery
		}
		return Schedule{text: text, every: every}, nil
	}
	// As in other cron implementations, a day matches by day of month or by weekday.
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

// Next returns the first scheduled time after the given time. It returns the zero time for
// the zero Schedule. Intervals count from the zero time, so that a restart does not shift
// the runs.
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

// IsZero reports whether s is the zero Schedule.
func (s Schedule) IsZero() bool { return s.every == 0 && s.cron == nil }

// String returns the text of the schedule.
func (s Schedule) String() string { return s.text }
