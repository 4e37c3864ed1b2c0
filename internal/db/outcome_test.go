package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func pgError(code string) error { return fmt.Errorf("commit: %w", &pgconn.PgError{Code: code}) }

func TestOutcomeUnknown_UnlessPostgreSQLSaysThatNothingWasKept(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		unknown bool
	}{
		"the connection broke":           {io.ErrUnexpectedEOF, true},
		"it was given up":                {context.Canceled, true},
		"transaction resolution unknown": {pgError("08007"), true},
		"statement completion unknown":   {pgError("40003"), true},
		"shutdown":                       {pgError("57P01"), true},
		"crash":                          {pgError("57P02"), true},
		"an unknown kind of error":       {errors.New("what"), true},
		"it was rolled back":             {pgx.ErrTxCommitRollback, false},
		"a constraint":                   {pgError("23505"), false},
		"serialization":                  {pgError(pgSerialization), false},
		"deadlock":                       {pgError(pgDeadlock), false},
	} {
		if got := outcomeUnknown(c.err); got != c.unknown {
			t.Errorf("%s: unknown %v", name, got)
		}
	}
}

func TestPasses_WhatTheDatabaseIsToBlameForAndMayEnd(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		passes bool
	}{
		"no connection":            {&pgconn.ConnectError{Config: &pgconn.Config{}}, true},
		"the connection broke":     {io.ErrUnexpectedEOF, true},
		"too many connections":     {pgError("53300"), true},
		"full disk":                {pgError("53100"), true},
		"shutdown":                 {pgError("57P01"), true},
		"a session ended for us":   {pgError(pgIdleTimeout), true},
		"starting":                 {pgError("57P03"), true},
		"a standby":                {pgError(pgReadOnly), true},
		"deadlocks without an end": {pgError(pgDeadlock), true},
		"a constraint":             {pgError("23505"), false},
		"our own SQL":              {pgError(pgUndefinedTable), false},
		"the caller gave up":       {context.Canceled, false},
		"our own error":            {errors.New("what"), false},
		"nothing":                  {nil, false},
	} {
		if got := passes(c.err); got != c.passes {
			t.Errorf("%s: passes %v", name, got)
		}
	}
}
