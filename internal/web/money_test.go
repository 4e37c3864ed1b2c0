package web

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/view"
)

// The buyer of a pending trade has paid, so its money is held like that of a completed trade.
func TestHolds_AddUpToTheHeldAmount(t *testing.T) {
	for _, engine := range []string{dbtest.SQLite, dbtest.PostgreSQL} {
		t.Run(engine, func(t *testing.T) {
			w := newWorldOn(t, engine)
			w.trade()
			v := w.visit(t, marketSecret)
			rows := regexp.MustCompile(`<tr><th scope="row"><a href="/trades/(\d)">.*<data value="([0-9.]+)".*</tr>`)
			for _, page := range []string{"/ledger?of=holds", "/ledger?user=anna"} {
				var held money.Micro
				var trades string
				for _, row := range rows.FindAllStringSubmatch(v.get(page).body, -1) {
					amount, err := money.Parse([]byte(row[2]), 1)
					must(t, err)
					held += amount
					trades += row[1] + " " + strconv.FormatBool(strings.Contains(row[0], "after the handover")) + ", "
				}
				if want := "1 false, 2 true, "; trades != want {
					t.Errorf("%s: got the trades %q, want %q", page, trades, want)
				}
				if got, want := strconv.FormatInt(int64(held/10_000), 10), w.read(`SELECT held FROM wallet_account WHERE user_id = 'anna'`); got != want {
					t.Errorf("%s: got holds of %s cents, want the held amount of the account, %s", page, got, want)
				}
			}
		})
	}
}

func TestHolds_ArePagedByEndThenSale(t *testing.T) {
	w := newWorld(t)
	w.trade()
	readers := view.New(view.Options{Store: w.store, Currency: "USD", Now: w.clock.Now})
	var trades []int64
	for after, more := "", true; more; {
		p, err := readers.Market.Holds(t.Context(), "", after, 1)
		must(t, err)
		for _, h := range p.Items {
			trades = append(trades, h.TradeID)
		}
		if more = p.NextCursor != nil; more {
			after = *p.NextCursor
		}
	}
	if !slices.Equal(trades, []int64{1, 2}) {
		t.Errorf("got the trades %d in pages of 1, want 1, which has an end, then 2", trades)
	}
}

func TestLedger_ShowsBalancesEntriesAndHolds(t *testing.T) {
	w := newWorld(t)
	w.trade()
	v := w.visit(t, marketSecret)
	mustContain(t, v.get("/ledger").body, "The whole ledger has not been verified yet.", `href="/ledger?user=anna"`, "$9,936.50")
	mustContain(t, v.get("/ledger?of=holds").body, `href="/trades/1"`, "$29.45", "in 7 d")
	must(t, w.ledger.VerifyAll(t.Context()))
	mustContain(t, v.get("/ledger").body, "The ledger is correct.", "just now")
	body := v.get("/ledger?user=ben").body
	mustContain(t, body, "$10,000.00", "-$32.50", "$9,969.00", "$9,936.50", "Purchase", `href="/trades/2"`)
	mustContain(t, v.get("/ledger?user=anna").body, "Held until a trade settles", "$60.33", "$29.45")
	mustContain(t, v.get("/ledger?user=trader").body, "There are no entries", "$0.00")
	if res := v.get("/ledger?user=unknown"); res.StatusCode != http.StatusNotFound {
		t.Errorf("unknown user: got status %d, want 404", res.StatusCode)
	}
}

func TestLedger_VerifyAnswersInPlainWords(t *testing.T) {
	w := newWorld(t)
	w.trade()
	v := w.visit(t, adminToken)
	mustContain(t, v.post("/ledger/verify?user=ben").body, "This ledger is ", "Verified at 2026-10-05 14:03:22 UTC", "chain_link")
	w.exec(`DROP TRIGGER IF EXISTS wallet_account_update`)
	w.exec(`UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'ben'`)
	mustContain(t, v.get("/ledger?user=ben").body, "The balance does not match the ledger.")
	mustContain(t, v.post("/ledger/verify?user=ben").body, "This ledger does not verify:", "cached_balance", "Findings")
}

func TestLedger_VerifyOfUserWithoutWalletStaysOnPage(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	mustContain(t, v.get("/ledger?user=collector").body, `name="back" value="/ledger?user=collector"`)
	res := v.post("/ledger/verify?user=collector", "back", "/ledger?user=collector")
	if got := res.Header.Get("Location"); got != "/ledger?user=collector" {
		t.Errorf("got status %d and location %q, want a redirect to the ledger of the user", res.StatusCode, got)
	}
	mustContain(t, v.get("/ledger?user=collector").body, "The user has no wallet.")
}

func TestLedger_VerifiesTheWholeLedger(t *testing.T) {
	w := newWorld(t)
	w.trade()
	v := w.visit(t, adminToken)
	v.post("/ledger/verify-all", "back", "/ledger")
	mustContain(t, v.get("/ledger").body, "The whole ledger was verified.", "The ledger is correct.", "just now")
	w.exec(`DROP TRIGGER IF EXISTS wallet_account_update`)
	w.exec(`UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'ben'`)
	v.post("/ledger/verify-all", "back", "/ledger")
	mustContain(t, v.get("/ledger").body, "The ledger does not verify:", "cached_balance")
}

func TestLedger_ReportsThatVerificationTakesTooLong(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	s := w.handler.(*site)
	if s.verifyTime != 90*time.Second {
		t.Errorf("limit of a verification: got %v, want 90s", s.verifyTime)
	}
	s.verifyTime = time.Millisecond
	s.verifyLedger = func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("verify the ledger: %w", ctx.Err())
	}
	v.post("/ledger/verify-all", "back", "/ledger")
	mustContain(t, v.get("/ledger").body, "The ledger is too large to verify here within 1 ms. Nothing was stored.", "assay verify --all",
		"The whole ledger has not been verified yet.")
}

func TestLedger_SendsEntriesAsFile(t *testing.T) {
	w := newWorld(t)
	w.trade()
	v := w.visit(t, marketSecret)
	mustContain(t, v.get("/ledger?user=ben").body, `href="/ledger?format=csv&amp;user=ben"`)
	file := v.get("/ledger?user=ben&format=csv")
	mustContain(t, file.body, "userId,currency,seq,", "\nben,USD,3,", ",purchase,-3250,993650,0,2,", "\nben,USD,1,", ",deposit,1000000,1000000,")
	if rows := strings.Count(file.body, "\n"); rows != 5 || file.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Errorf("got %d lines of %s, want 5 of a CSV file", rows, file.Header.Get("Content-Type"))
	}
	if res := v.get("/ledger?user=unknown&format=csv"); res.StatusCode != http.StatusNotFound {
		t.Errorf("unknown user: got status %d, want 404", res.StatusCode)
	}
}

func TestFees_CompareActivateAndRollBack(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	mustContain(t, v.get("/fees").body, "The rules of the source are in force.", "Fee: 5 % of gross", "Version 1")
	mustContain(t, v.get("/fees?kind=sale&amount=12.50&currency=USD").body, "Fee <data value=\"0.62\"", "by rule sales")
	mustContain(t, v.get("/fees?kind=sale&amount=1.001&currency=USD").body, "The amount must be a decimal number above 0")
	w.writeFees(600)
	body := v.get("/fees").body
	mustContain(t, body, "1 rule differs.", "<div><b>Fee: 6 % of gross</b></div>", "<div>For: ", "Modified", "$60.00")
	_, rest, _ := strings.Cut(body, `name="digest" value="`)
	digest, _, _ := strings.Cut(rest, `"`)
	mustContain(t, v.post("/fees/activate", "digest", digest).body, "Activate 1 change?")
	v.post("/fees/activate", "digest", "0", "confirmed", "1", "back", "/fees")
	mustContain(t, v.get("/fees").body, "have changed since this page was loaded", "Version 1,")
	v.post("/fees/activate", "digest", digest, "confirmed", "1", "back", "/fees")
	mustContain(t, v.get("/fees").body, "Version 2 of the fee rules is in force.", "The rules of the source are in force.")
	mustContain(t, v.post("/fees/rollback?version=1").body, "Roll back to version 1 with 1 change?")
	v.post("/fees/rollback?version=1", "confirmed", "1", "back", "/fees")
	mustContain(t, v.get("/fees").body, "Version 3 with the rules of version 1 is in force.", "1 rule differs.")
}

func TestFees_ListLargeChangesBeforeActivationAndRollback(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	w.writeFees(2000)
	const up = `1 example payment changes by more than half or five percentage points:</b></p><ul class="problems"><li class="warn">sale 1.00 USD: the fee would change from 0.05 (rule sales) to 0.20 (rule sales)</li></ul>`
	body := v.get("/fees").body
	mustContain(t, body, up)
	_, rest, _ := strings.Cut(body, `name="digest" value="`)
	digest, _, _ := strings.Cut(rest, `"`)
	mustContain(t, v.post("/fees/activate", "digest", digest).body, up)
	v.post("/fees/activate", "digest", digest, "confirmed", "1", "back", "/fees")
	mustContain(t, v.post("/fees/rollback?version=1").body, `points:</b></p><ul class="problems"><li class="warn">sale 1.00 USD: the fee would change from 0.20 (rule sales) to 0.05 (rule sales)</li></ul>`)
}

func TestFees_ExplainBrokenSource(t *testing.T) {
	w := newWorld(t)
	w.writeFees(-5)
	v := w.visit(t, marketSecret)
	body := v.get("/fees").body
	mustContain(t, body, "The source cannot be used:", "The fee rules are invalid. The active rules are unchanged. /rules/0/basisPoints: ", "Fee: 5 % of gross", "not usable")
	for _, wrong := range []string{"the same", "Unchanged", ".;"} {
		if strings.Contains(body, wrong) {
			t.Errorf("got a page with %q, want no comparison with a source that cannot be used", wrong)
		}
	}
	if n := strings.Count(body, "/rules/0/basisPoints"); n != 1 {
		t.Errorf("got the error %d times, want it once", n)
	}
	mustContain(t, v.get("/fees?kind=sale&currency=USD&amount=5&country=Germany").body, "The payment cannot be quoted. /country: must be two letters")
	admin := w.visit(t, adminToken)
	admin.post("/fees/activate", "back", "/keys")
	mustContain(t, admin.get("/keys").body, "The fee rules are invalid. The active rules are unchanged. /rules/0/basisPoints: ")
}

func TestMinor_ShowsAllDecimalPlaces(t *testing.T) {
	for want, in := range map[string]struct {
		amount   int64
		currency money.Currency
	}{
		"$1,234.56": {123_456, "USD"}, "-$0.05": {-5, "USD"}, "JPY\u00a01,230": {1230, "JPY"}, "KWD\u00a01.234": {1234, "KWD"}, "€0.00": {0, "EUR"},
	} {
		if got := minor(in.amount, in.currency).Short; got != want {
			t.Errorf("minor(%d, %s): got %q, want %q", in.amount, in.currency, got, want)
		}
	}
}
