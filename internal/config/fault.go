package config

import (
	"fmt"
	"strings"

	"assay/internal/fault"
)

// Fault is an error in a configuration. Its text contains no secret.
type Fault struct {
	Origin  string // origin of the setting, such as "environment" or "assay.conf:3"
	Setting string // name of the setting; empty for an error in the syntax of a file
	Problem string // the problem and its fix
}

// Error returns origin, setting and problem.
func (f Fault) Error() string {
	s := f.Origin + ": "
	if f.Setting != "" {
		s += f.Setting + ": "
	}
	return s + f.Problem
}

// Faults are all errors in a configuration, in the order of the documentation.
type Faults []Fault

// Error lists all faults, one per line.
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

// Unwrap returns the faults as a fault.Invalid, which determines the exit code of the
// command line.
func (fs Faults) Unwrap() error {
	return fault.New(fault.Invalid, "invalid_configuration", "%s", fs.Error())
}

// err returns the faults as an error, or nil if there are none.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}
