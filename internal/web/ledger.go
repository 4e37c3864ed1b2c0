package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"assay/internal/admission"
	users "assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
)

const (
	entriesPerPage = 50
	holdsShown     = 50 // holds on the page of one user
)

// answer is the result of a verification, shown as a notice.
type answer struct {
	Tone string // of a notice
	Text string
	More string // what to do, or what it means
}

// answerOf returns the answer of a verification. The parameter what is "The ledger" or "This ledger".
func answerOf(status audit.Status, what string, failures int64) answer {
	switch status {
	case audit.OK:
		return answer{"good", what + " is correct.", "Every check passed or did not apply."}
	case audit.Incomplete:
		return answer{"warn", what + " is partially verified.", "No errors were found, but at least one check could not run."}
	}
	return answer{"bad", what + " does not verify: " + formatCount(failures) + " errors.", "Stop payments of the affected users, keep the database as it is, and compare it with a backup."}
}

// ledgerPage shows the last verification, and the accounts or the holds.
type ledgerPage struct {
	frame
	Answer   answer
	Verified *view.LedgerVerification // nil: never
	Tabs     []tab
	OfHolds  bool
	Accounts []view.WalletAccount
	Holds    []view.Hold
	List     listState
	Empty    emptyState
	API      apiCall
}

func (s *moneyPages) ledger(w http.ResponseWriter, r *http.Request, sess session) (err error) {
	if r.URL.Query().Get("user") != "" {
		if r.URL.Query().Get("format") == "csv" {
			return s.entriesCSV(w, r)
		}
		return s.showUser(w, r, sess, nil)
	}
	list, cursor := listOf(r, "of"), r.URL.Query().Get("cursor")
	page := ledgerPage{
		frame: s.frame("Ledger", "ledger", &sess), OfHolds: list.Get("of") == "holds",
		Tabs:   []tab{list.Tab("Accounts", "of", ""), list.Tab("Holds", "of", "holds")},
		Answer: answer{"calm", "The whole ledger has not been verified yet.", "The service verifies it in the background."},
		Empty:  emptyState{"No account yet", "An account is created by the first deposit with POST /api/functions/admin/wallet-ledger/{userId}/entries."},
	}
	if page.Verified, err = s.Health.LedgerVerification(r.Context()); err != nil {
		return err
	}
	if v := page.Verified; v != nil {
		page.Answer = answerOf(audit.Status(v.Status), "The ledger", v.FailureCount)
	}
	if page.OfHolds {
		found, err := s.Market.Holds(r.Context(), "", cursor, entriesPerPage)
		if err != nil {
			return err
		}
		page.Holds, page.List = found.Items, list.until(found.NextCursor)
		page.Empty = emptyState{"No hold", "The credit of a seller is held from the sale until the trade settles."}
	} else {
		found, err := s.Wallets.Accounts(r.Context(), cursor, entriesPerPage)
		if err != nil {
			return err
		}
		page.Accounts, page.List = found.Items, list.until(found.NextCursor)
	}
	page.API = balanceCall(page)
	return s.show(w, r, "ledger", page)
}

// balanceCall returns the API request of the first user on a page. The API has balances and holds of
// a user, but no list of all users.
func balanceCall(page ledgerPage) apiCall {
	user := "{userId}"
	switch {
	case len(page.Accounts) > 0:
		user = url.PathEscape(page.Accounts[0].UserID)
	case len(page.Holds) > 0:
		user = url.PathEscape(page.Holds[0].SellerID)
	}
	return apiCall{Method: http.MethodGet, Path: "/api/functions/admin/wallet-ledger/" + user + "/balance"}
}

// ledgerUserPage shows the ledger of a user.
type ledgerUserPage struct {
	frame
	ID                 string
	MarketplaceAccount bool          // not a user, but an account of the marketplace
	Answer             *answer       // nil: not verified by this request
	Report             *audit.Report // of Answer
	Tampered           bool
	Accounts           []view.WalletBalance
	Entries            []view.WalletEntry
	Holds              []view.Hold
	MoreHeld           bool // there are more holds
	List               listState
	API                apiCall
}

// showUser shows the ledger of the user in the query. If report is not nil, it also shows the
// result of that verification.
func (s *moneyPages) showUser(w http.ResponseWriter, r *http.Request, sess session, report *audit.Report) error {
	id, err := userID(r)
	if err != nil {
		return err
	}
	list := listOf(r, "user", "currency")
	list.path = "/ledger"
	page := ledgerUserPage{
		frame: s.frame("Ledger of "+id, "ledger", &sess), ID: id, MarketplaceAccount: users.Reserved(id), Report: report,
		API: apiCall{Method: http.MethodGet, Path: "/api/functions/admin/wallet-ledger/" + url.PathEscape(id) + "/verify"},
	}
	if report != nil {
		a := answerOf(report.Status, "This ledger", report.FailureCount)
		page.Answer = &a
	}
	found, err := s.Wallets.Wallet(r.Context(), id)
	switch {
	case errors.Is(err, wallet.ErrTampered), errors.Is(err, wallet.ErrNoKey):
		page.Tampered = true
	case err != nil:
		return err
	}
	page.Accounts = found.Accounts
	if err := s.fillUser(r.Context(), &page, list, r.URL.Query().Get("cursor")); err != nil {
		return err
	}
	return s.show(w, r, "ledger-user", page)
}

// fillUser reads the entries and the holds of a user.
func (s *moneyPages) fillUser(ctx context.Context, page *ledgerUserPage, list listState, cursor string) error {
	entries, err := s.Wallets.WalletEntries(ctx, page.ID, list.Get("currency"), cursor, entriesPerPage)
	switch {
	case page.Tampered && errors.Is(err, wallet.ErrTampered): // a tampered account without entries
	case err != nil:
		return err
	}
	page.Entries, page.List = entries.Items, list.until(entries.NextCursor)
	holds, err := s.Market.Holds(ctx, page.ID, "", holdsShown)
	page.Holds, page.MoreHeld = holds.Items, holds.NextCursor != nil
	return err
}

// entriesCSV sends all entries of the user in the query as a file. Amounts are in minor units.
func (s *moneyPages) entriesCSV(w http.ResponseWriter, r *http.Request) error {
	id, err := userID(r)
	if err != nil {
		return err
	}
	read := func(cursor string) (view.Page[view.WalletEntry], error) {
		return s.Wallets.WalletEntries(r.Context(), id, r.URL.Query().Get("currency"), cursor, csvChunk)
	}
	found, err := read("")
	if err != nil {
		return err
	}
	return s.sendCSV(w, r, "entries", []string{
		"userId", "currency", "seq", "transactionId", "type", "amountMinor", "balanceAfterMinor", "heldAfterMinor", "tradeId", "reversesSeq", "createdAt", "hash",
	}, records(found, entryRecord, read))
}

// entryRecord returns an entry as a row of a file.
func entryRecord(e *view.WalletEntry) []string {
	var trade, reverses string
	if e.TradeID != nil {
		trade = *e.TradeID
	}
	if e.ReversesSeq != nil {
		reverses = text(*e.ReversesSeq)
	}
	return []string{
		e.UserID, e.Currency, text(e.Seq), e.TransactionID, e.Type, text(e.Amount), text(e.BalanceAfter), text(e.HeldAfter),
		trade, reverses, csvTime(&e.CreatedAt), e.Hash,
	}
}

// verifyTime limits a verification of the whole ledger on the page. The server ends every response
// after two minutes.
const verifyTime = 90 * time.Second

// verifyAll verifies the whole ledger and stores the result, like the background verification.
// The gate limits how many verifications run at once.
func (s *moneyPages) verifyAll(w http.ResponseWriter, r *http.Request, sess session) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.verifyTime)
	defer cancel()
	leave, err := s.Gate.Enter(ctx, admission.Verification)
	if err == nil {
		err = s.verifyLedger(ctx)
		leave()
	}
	if r.Context().Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return s.done(w, r, sess, flash{Text: "The ledger is too large to verify here within " + humanDuration(s.verifyTime) +
			". Nothing was stored. Run assay verify --all, or wait for the verification in the background."}, nil)
	}
	return s.done(w, r, sess, flash{Good: true, Text: "The whole ledger was verified. The result is below."}, err)
}

// verify verifies the ledger of the user in the query and shows the result.
func (s *moneyPages) verify(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := userID(r)
	if err != nil {
		return err
	}
	report, err := s.verifyUser(r.Context(), id)
	if err != nil {
		return s.done(w, r, sess, flash{}, err)
	}
	return s.showUser(w, r, sess, report)
}

// verifyUser verifies the ledger of a user. It waits for the gate, because a verification reads a
// whole chain.
func (s *moneyPages) verifyUser(ctx context.Context, id string) (*audit.Report, error) {
	leave, err := s.Gate.Enter(ctx, admission.Verification)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.Ledger.Verify(ctx, id, "")
}
