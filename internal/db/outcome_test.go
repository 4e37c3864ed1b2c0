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

func TestOutcomeUnknown_ForErrorsOfACommit(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		unknown bool
	}{
		"connection lost":                {io.ErrUnexpectedEOF, true},
		"cancelled":                      {context.Canceled, true},
		"transaction resolution unknown": {pgError("08007"), true},
		"statement completion unknown":   {pgError("40003"), true},
		"shutdown":                       {pgError("57P01"), true},
		"crash":                          {pgError("57P02"), true},
		"other error":                    {errors.New("other error"), true},
		"rolled back":                    {pgx.ErrTxCommitRollback, false},
		"constraint violation":           {pgError("23505"), false},
		"serialization":                  {pgError(pgSerialization), false},
		"deadlock":                       {pgError(pgDeadlock), false},
	} {
		if got := outcomeUnknown(c.err); got != c.unknown {
			t.Errorf("%s: outcomeUnknown() = %v, want %v", name, got, c.unknown)
		}
	}
}

func TestIsTemporary(t *testing.T) {
	for name, c := range map[string]struct {
		err       error
		temporary bool
	}{
		"no connection":            {&pgconn.ConnectError{Config: &pgconn.Config{}}, true},
		"connection lost":          {io.ErrUnexpectedEOF, true},
		"too many connections":     {pgError("53300"), true},
		"full disk":                {pgError("53100"), true},
		"shutdown":                 {pgError("57P01"), true},
		"idle transaction timeout": {pgError(pgIdleTimeout), true},
		"server starting":          {pgError("57P03"), true},
		"standby":                  {pgError(pgReadOnly), true},
		"deadlock":                 {pgError(pgDeadlock), true},
		"constraint violation":     {pgError("23505"), false},
		"undefined table":          {pgError(pgUndefinedTable), false},
		"cancelled":                {context.Canceled, false},
		"other error":              {errors.New("other error"), false},
		"no error":                 {nil, false},
	} {
		if got := isTemporary(c.err); got != c.temporary {
			t.Errorf("%s: isTemporary() = %v, want %v", name, got, c.temporary)
		}
	}
}
