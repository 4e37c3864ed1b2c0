package config

import (
	"fmt"
	"strings"

	"assay/internal/fault"
)

// Fault is one thing wrong with a configuration. Its text holds no secret.
type Fault struct {
	Origin  string // where it was set: "environment", "--market-price-ttl", "assay.conf:3"
	Setting string // its name; empty where the fault is the file's own
	Problem string // what is wrong and what to do
}

// Error returns origin, setting and problem.
func (f Fault) Error() string {
	s := f.Origin + ": "
	if f.Setting != "" {
		s += f.Setting + ": "
	}
	return s + f.Problem
}

// Faults are all things wrong with a configuration, in the order in which
// settings are documented.
type Faults []Fault

// Error lists all faults, one a line.
func (fs Faults) Error() string {
	if len(fs) == 1 {
		return "configuration: " + fs[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration has %d faults:", len(fs))
	for _, f := range fs {
		b.WriteString("\n  " + f.Error())
	}
	return b.String()
}

// Unwrap returns the faults as an invalid input, from which the command line derives its
// exit code.
func (fs Faults) Unwrap() error {
	return fault.New(fault.Invalid, "invalid_configuration", "%s", fs.Error())
}

// err returns the faults as an error, or nil where there are none.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}
