package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/alecthomas/kong"

	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/fault"
)

// Scripts depend on these exit codes. Never change their meaning.
const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2
	exitUnreachable  = 3
	exitUnauthorized = 4
	exitRunFailed    = 5
	exitNotFound     = 6
	exitRefused      = 7
	exitLedgerFailed = 8
	exitIncomplete   = 9
	exitInterrupted  = 130
)

// exitMeaning is an exit code with its meaning in the help.
type exitMeaning struct {
	code int
	text string
}

// exitMeanings documents every exit code.
func exitMeanings() []exitMeaning {
	return []exitMeaning{
		{exitOK, "done"},
		{exitFailed, "failed for another reason; the reason is printed"},
		{exitUsage, "wrong usage or configuration; nothing was done"},
		{exitUnreachable, "the server, the database or the tested provider is unreachable or unhealthy"},
		{exitUnauthorized, "the server does not accept the secret"},
		{exitRunFailed, "the refresh failed: no item got a price (with --wait)"},
		{exitNotFound, "the named object does not exist"},
		{exitRefused, "invalid input or conflicting state"},
		{exitLedgerFailed, "the wallet ledger failed verification"},
		{exitIncomplete, "incomplete: the refresh is partial because items or markets are missing (with --wait), or the wallet ledger is partially verified with no errors found"},
		{exitInterrupted, "interrupted while waiting"},
	}
}

var (
	// errReported ends a command whose output already describes the failure.
	errReported = errors.New("already reported")
	// errRunFailed means that no item got a price in a refresh.
	errRunFailed = fmt.Errorf("the refresh failed: %w", errReported)
	// errRunPartial means that a refresh lacks items or markets.
	errRunPartial = fmt.Errorf("the refresh is partial: %w", errReported)
	// errLedgerFailed means that the verification found an error.
	errLedgerFailed = fmt.Errorf("the ledger failed verification: %w", errReported)
	// errLedgerIncomplete means that the verification could not check everything.
	errLedgerIncomplete = fmt.Errorf("the ledger is partially verified: %w", errReported)
	// errUnhealthy means that the server responded and is unhealthy.
	errUnhealthy = fmt.Errorf("the server is unhealthy: %w", errReported)
)

// usageError is an invalid command line.
type usageError struct {
	text string
	hint string // the fix; if empty, Run inserts a reference to the help
}

func (e *usageError) Error() string { return e.text }

// usage converts a parser error to a usageError. Its hint refers to the command's help.
func usage(err error) error {
	var node *kong.Node
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		node = parse.Context.Selected()
	}
	return &usageError{text: err.Error(), hint: seeHelp(node)}
}

// seeHelp returns a hint to the help of a command. A nil node means the program.
func seeHelp(node *kong.Node) string {
	path := "assay"
	if node != nil {
		path = node.FullPath()
	}
	return "run `" + path + " --help`"
}

// settingsError is an invalid setting, such as a file of price lists with errors.
type settingsError struct{ err error }

func (e *settingsError) Error() string { return e.err.Error() }
func (e *settingsError) Unwrap() error { return e.err }

// settingsAtFault converts a fault.Invalid at the start to a settingsError, because the
// configuration is the only input at that point.
func settingsAtFault(err error) error {
	if f := fault.Of(err); f != nil && f.Kind == fault.Invalid {
		return &settingsError{err: err}
	}
	return err
}

// exitCode maps errors to exit codes. No other code does this.
func exitCode(err error) int {
	var (
		use         *usageError
		settings    config.Faults
		unusable    *settingsError
		secret      *missingSecret
		unreachable *unreachableError
		response    *problem
		refused     *fault.Error
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &use), errors.As(err, &settings), errors.As(err, &unusable), errors.As(err, &secret):
		return exitUsage
	case errors.As(err, &unreachable), errors.Is(err, errUnhealthy), errors.Is(err, errProviderUnread):
		return exitUnreachable
	case errors.As(err, &response):
		return exitCodeOfProblem(response)
	case errors.As(err, &refused):
		return exitCodeOfKind(refused.Kind)
	case errors.Is(err, db.ErrDatabaseExists), errors.Is(err, db.ErrDatabaseNotEmpty), errors.Is(err, db.ErrDatabaseInUse), errors.Is(err, db.ErrDatabaseLocked), errors.Is(err, fs.ErrExist),
		errors.Is(err, db.ErrSameDatabase), errors.Is(err, db.ErrSchemaNewer), errors.Is(err, db.ErrSchemaUnknown), errors.Is(err, db.ErrSchemaChanged), errors.Is(err, db.ErrBackupDamaged), errors.Is(err, db.ErrSourceInUse), errors.Is(err, db.ErrTargetNotEmpty):
		return exitRefused
	case errors.Is(err, errLedgerFailed):
		return exitLedgerFailed
	case errors.Is(err, errLedgerIncomplete), errors.Is(err, errRunPartial):
		return exitIncomplete
	case errors.Is(err, errRunFailed):
		return exitRunFailed
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	default:
		return exitFailed
	}
}

// exitCodeOfProblem returns the exit code for an error response.
func exitCodeOfProblem(response *problem) int {
	switch status := response.Status; {
	case response.damaged():
		return exitLedgerFailed
	case status == 401 || status == 403 || status == 429:
		return exitUnauthorized
	case status == 404:
		return exitNotFound
	case status == 502 || status == 503 || status == 504:
		return exitUnreachable
	case status >= 400 && status < 500:
		return exitRefused
	default:
		return exitFailed
	}
}

// exitCodeOfKind returns the exit code for a local fault.
func exitCodeOfKind(kind fault.Kind) int {
	switch kind {
	case fault.Unauthorized, fault.Forbidden:
		return exitUnauthorized
	case fault.NotFound:
		return exitNotFound
	case fault.Unavailable, fault.Upstream, fault.Busy:
		return exitUnreachable
	case fault.Damaged:
		return exitLedgerFailed
	case fault.Invalid, fault.Conflict, fault.Unprocessable, fault.TooLarge:
		return exitRefused
	default:
		return exitFailed
	}
}

// hinter is an error with a suggested fix.
type hinter interface{ Hint() string }

// Hint returns the suggested fix.
func (e *usageError) Hint() string { return e.hint }

// printError writes err as text: the error, each invalid field, and the fix.
func printError(w io.Writer, err error) {
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	var text strings.Builder
	text.WriteString("assay: " + err.Error() + "\n")
	if response, ok := errors.AsType[*problem](err); ok {
		for _, f := range response.Errors {
			fmt.Fprintf(&text, "  %s: %s\n", f.Pointer, f.Detail)
		}
	}
	var h hinter
	if errors.As(err, &h) && h.Hint() != "" {
		text.WriteString(h.Hint() + "\n")
	}
	_, _ = io.WriteString(w, text.String())
}

// failure is an error in the format of --json, on standard error.
type failure struct {
	Error failureBody `json:"error"`
}

type failureBody struct {
	ExitCode  int           `json:"exitCode"`
	Detail    string        `json:"detail"`
	Hint      string        `json:"hint,omitzero"`
	Status    int           `json:"status,omitzero"`
	Code      string        `json:"code,omitzero"`
	RequestID string        `json:"requestId,omitzero"`
	Errors    []fault.Field `json:"errors,omitzero"`
}

func newFailure(err error, code int) failure {
	body := failureBody{ExitCode: code, Detail: err.Error()}
	var h hinter
	if errors.As(err, &h) {
		body.Hint = h.Hint()
	}
	if response, ok := errors.AsType[*problem](err); ok {
		body.Detail, body.Status, body.Code = response.Detail, response.Status, response.Code
		body.RequestID, body.Errors = response.RequestID, response.Errors
	}
	return failure{Error: body}
}
