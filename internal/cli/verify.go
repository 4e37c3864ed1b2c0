package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"assay/internal/app"
	"assay/internal/wallet/audit"
)

// verifyCmd verifies the wallet ledger.
type verifyCmd struct {
	User       string `arg:"" optional:"" complete:"user" help:"The platform's id of the user whose wallet to verify."`
	All        bool   `help:"Verify the whole ledger in the database, even while the server runs."`
	Database   bool   `help:"Verify the user's wallet in the database instead of on the server."`
	Checkpoint string `placeholder:"TEXT" help:"Compare with a checkpoint of this user from an earlier verification, instead of the newest stored one."`
}

func (*verifyCmd) examples() []example {
	return []example{
		{"verify u1", "verify u1's wallet on the server; exit code 8: verification failed, 9: partially verified"},
		{"verify u1 --checkpoint AQJrMQ...", "also compare it with a checkpoint stored elsewhere"},
		{"verify --all", "verify the whole ledger, even while the server runs"},
		{"verify --all --json", "print the report as JSON"},
	}
}

func (c *verifyCmd) Run(ctx context.Context, s *session) error {
	switch {
	case c.All == (c.User != "") || c.All && c.Checkpoint != "":
		return &usageError{text: "give a user or --all; --checkpoint needs a user"}
	case c.All:
		return c.everything(ctx, s)
	}
	r, err := c.user(ctx, s)
	if err != nil {
		return err
	}
	if err := s.out.result(r, func(w io.Writer) {
		var entries int64
		for _, a := range r.Accounts {
			entries += a.Entries
		}
		_, _ = fmt.Fprintf(w, "%s: %s, %s in %s\n", printable(r.UserID), r.Status,
			plural(entries, "entry", "entries"), plural(int64(len(r.Accounts)), "account", "accounts"))
		writeVerification(w, r.Checks, r.Failures, r.Warnings, r.FailureCount)
		if r.Checkpoint != nil {
			_, _ = fmt.Fprintf(w, "checkpoint (store it elsewhere): %s\n", *r.Checkpoint)
		}
	}); err != nil {
		return err
	}
	return statusError(r.Status)
}

// user verifies a user's wallet on the server, or in the database if --database is set.
func (c *verifyCmd) user(ctx context.Context, s *session) (*audit.Report, error) {
	if !c.Database {
		api, err := s.server()
		if err != nil {
			return nil, err
		}
		r := walletRequest(c.User, "/verify")
		r.query, r.timeout = filter("checkpoint", c.Checkpoint), verifyTimeout
		return call[*audit.Report](ctx, api, r)
	}
	a, err := s.auditor(ctx)
	if err != nil {
		return nil, err
	}
	return a.VerifyUser(ctx, c.User, c.Checkpoint)
}

func (c *verifyCmd) everything(ctx context.Context, s *session) error {
	a, err := s.auditor(ctx)
	if err != nil {
		return err
	}
	p := s.newProgress()
	r, err := a.VerifyAll(ctx, func(v audit.Progress) {
		p.show("verify", min(v.Done, v.Total), v.Total, "", fmt.Sprintf("verify: %s of %s rows", count(v.Done), count(v.Total)))
	})
	p.end()
	if err != nil {
		return err
	}
	if err := s.out.result(r, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "ledger: %s, %s in %s, %s, in %.1f s\n", r.Status, plural(r.Entries, "entry", "entries"),
			plural(r.Accounts, "account", "accounts"), plural(r.Transactions, "transaction", "transactions"), r.FinishedAt.Sub(r.VerifiedAt).Seconds())
		writeVerification(w, r.Checks, r.Failures, r.Warnings, r.FailureCount)
	}); err != nil {
		return err
	}
	return statusError(r.Status)
}

// auditor returns an auditor that reads the database directly.
func (s *session) auditor(ctx context.Context) (*audit.Auditor, error) {
	cfg, err := s.settings(nil)
	if err != nil {
		return nil, err
	}
	switch {
	case len(cfg.LedgerKeys) > 0:
	case cfg.PricesOnly:
		return nil, &usageError{
			text: "there is no ledger to verify: MODULES is prices, and WALLET_LEDGER_KEY is not set",
			hint: "to turn the wallet on, set MODULES to prices,market,wallet and restart the server",
		}
	default:
		return nil, &missingSecret{setting: "WALLET_LEDGER_KEY", dir: cfg.DataDir}
	}
	if err := s.await(ctx, cfg, cfg.Database); err != nil {
		return nil, err
	}
	return app.OpenAuditor(cfg, storeOptions(cfg.Database), s.Now)
}

// writeVerification prints the failures, the skipped checks and the warnings, then a table of all
// checks.
func writeVerification(w io.Writer, checks []audit.Checked, failures, warnings []audit.Finding, n int64) {
	writeFindings(w, "", failures)
	if more := n - int64(len(failures)); more > 0 {
		_, _ = fmt.Fprintf(w, "and %s\n", plural(more, "more failure", "more failures"))
	}
	for _, c := range checks {
		if c.Status == audit.Skipped {
			_, _ = fmt.Fprintf(w, "not verified: %s: %s\n", c.Name, printable(c.Reason))
		}
	}
	writeFindings(w, "warning: ", warnings)
	rows := [][]string{{"CHECK", "STATUS", "EXAMINED", "FAILURES", "REASON"}}
	for _, c := range checks {
		rows = append(rows, []string{c.Name, string(c.Status), count(c.Examined), count(c.Failures), printable(c.Reason)})
	}
	table(w, rows)
}

func writeFindings(w io.Writer, kind string, findings []audit.Finding) {
	for _, f := range findings {
		at := ""
		if f.UserID != "" {
			at = cell(f.UserID) + " " + printable(string(f.Currency))
			if f.Seq != nil {
				at += fmt.Sprintf(" %d", *f.Seq)
			}
			at = strings.TrimSpace(at) + ": "
		}
		_, _ = fmt.Fprintf(w, "%s%s: %s%s Expected %s, found %s.\n", kind, f.Check, at, printable(f.Message), printable(f.Expected), printable(f.Actual))
	}
}

// statusError returns the error for a verification result.
func statusError(status audit.Status) error {
	switch status {
	case audit.OK:
		return nil
	case audit.Incomplete:
		return errLedgerIncomplete
	default:
		return errLedgerFailed
	}
}

// verifyTimeout limits the verification of a wallet by the server.
const verifyTimeout = 5 * time.Minute
