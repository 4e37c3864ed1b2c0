package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/randtest"
)

const ledgerPath = "/api/functions/admin/wallet-ledger/"

// deposited is a deposit with its request and its response, if any.
type deposited struct {
	user, key, body string
	response        []byte // nil: no response
}

// send posts the deposit.
func (d *deposited) send(s *server) (int, []byte, error) {
	return s.keyed(ledgerPath+d.user+"/entries", d.key, d.body)
}

// keyed sends a request with an Idempotency-Key as administrator.
func (s *server) keyed(path, key, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.secret("ADMIN_API_TOKEN"))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}

// TestLedger_KeepsAcknowledgedPostingsAfterKills kills a server while clients post, then sends
// every request again. Acknowledged requests must return the same bytes again. Each deposit
// must count once.
func TestLedger_KeepsAcknowledgedPostingsAfterKills(t *testing.T) {
	onBoth(t, testLedgerKills)
}

func testLedgerKills(t *testing.T, on engine) {
	s := on.newServer(t)
	r := randtest.New(t)
	s.start()
	var all []*deposited
	for round := range randtest.Count(4, 60) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		ctx, end := context.WithCancel(t.Context())
		for client := range 4 {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					d := &deposited{user: fmt.Sprintf("u%d", n%3), key: fmt.Sprintf("%d-%d-%d", round, client, n), body: `{"kind":"deposit","currency":"USD","amount":7}`}
					status, response, err := d.send(s)
					if err == nil && status == http.StatusCreated {
						d.response = response
					}
					mu.Lock()
					all = append(all, d)
					mu.Unlock()
					if err != nil {
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(20+r.IntN(150)) * time.Millisecond)
		s.kill()
		end()
		wg.Wait()
		s.start()
		s.verified()
	}
	acknowledged := 0
	for _, d := range all {
		status, response, err := d.send(s)
		if err != nil || status != http.StatusCreated {
			t.Fatalf("%s again: got %d %s, %v, want 201", d.key, status, response, err)
		}
		if d.response != nil {
			acknowledged++
			if !bytes.Equal(response, d.response) {
				t.Errorf("%s: got first %s, then %s, want the same twice", d.key, d.response, response)
			}
		}
	}
	t.Logf("%d deposits, %d of them acknowledged by the first response", len(all), acknowledged)
	checkBalances(t, s, int64(7*len(all)))
	s.verified()
	if _, err := s.stop(); err != nil {
		t.Error(err)
	}
	files, err := os.ReadDir(filepath.Join(s.dir, "checkpoints"))
	if err != nil || len(files) == 0 {
		t.Errorf("got no checkpoint after the stop, want one (error %v)", err)
	}
}

// checkBalances compares the balances of all users with the deposits and the house accounts.
func checkBalances(t *testing.T, s *server, want int64) {
	t.Helper()
	var sum int64
	for _, user := range []string{"u0", "u1", "u2", "house:deposit"} {
		var w struct {
			Accounts []struct{ Balance, Available, Held int64 }
		}
		s.get(ledgerPath+user+"/balance", &w)
		for _, a := range w.Accounts {
			if user == "house:deposit" && a.Balance != -want {
				t.Errorf("house balance: got %d, want %d", a.Balance, -want)
			}
			sum += a.Balance
		}
	}
	if sum != 0 {
		t.Errorf("sum of all balances: got %d, want 0", sum)
	}
}

// TestLedger_StartNeedsItsKey checks that a ledger does not continue with another key.
func TestLedger_StartNeedsItsKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	if status, response, err := s.keyed(ledgerPath+"u/entries", "k", `{"kind":"deposit","currency":"USD","amount":7}`); status != http.StatusCreated {
		t.Fatalf("deposit: got %d %s, %v, want 201", status, response, err)
	}
	s.await("the warning about the ledger key", func() bool { // the log arrives through a pipe
		return strings.Contains(s.log.String(), "ledger key and checkpoints are stored next to the database")
	})
	key := s.secret("WALLET_LEDGER_KEY")
	if _, err := s.stop(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, "secrets", "WALLET_LEDGER_KEY")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.refusesToStart("WALLET_LEDGER_KEY: is missing, and the ledger has entries")
	other := strings.Repeat("ab", 32)
	env := s.env
	for _, keys := range []string{other, "k2:" + other, "k2:" + other + ",k1:" + other} {
		s.env = append(slices.Clip(env), "WALLET_LEDGER_KEY="+keys)
		s.refusesToStart("lacks the key k1")
	}
	s.env = append(slices.Clip(env), "WALLET_LEDGER_KEY=k2:"+other+",k1:"+key)
	s.start()
	status, response, err := s.keyed(ledgerPath+"u/entries", "k again", `{"kind":"withdrawal","currency":"USD","amount":7}`)
	if err != nil || status != http.StatusCreated || !strings.Contains(string(response), `"keyId":"k2"`) {
		t.Errorf("with a new key in front: got %d %s, %v, want 201 with that key", status, response, err)
	}
	var page struct {
		Items      []json.RawMessage
		NextCursor *string
	}
	s.get(ledgerPath+"u/entries?limit=1", &page)
	if len(page.Items) != 1 || page.NextCursor == nil || !strings.Contains(string(page.Items[0]), `"seq":2`) {
		t.Errorf("first page: got %s, want entry 2 and a cursor", page.Items)
	}
	s.get(ledgerPath+"u/entries?limit=1&cursor="+*page.NextCursor, &page)
	if len(page.Items) != 1 || page.NextCursor != nil || !strings.Contains(string(page.Items[0]), `"seq":1`) {
		t.Errorf("second page: got %s, want entry 1 and no cursor", page.Items)
	}
}

// TestLedger_ServersShareOneKey starts servers with different keys on an empty ledger. On
// PostgreSQL, where several servers may run, the first start decides. An SQLite file belongs
// to one process, so its key may change until the first entry.
func TestLedger_ServersShareOneKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		s := on.newServer(t)
		s.start()
		other := "WALLET_LEDGER_KEY=" + strings.Repeat("ab", 32)
		if on == onPostgres {
			second := newServerOn(t, s.database, other)
			second.refusesToStart("lacks the key k1")
		}
		if _, err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if on == onSQLite {
			s.env = append(slices.Clip(s.env), other)
		}
		s.start()
		if status, response, err := s.keyed(ledgerPath+"u/entries", "k", `{"kind":"deposit","currency":"USD","amount":7}`); status != http.StatusCreated {
			t.Fatalf("deposit: got %d %s, %v, want 201", status, response, err)
		}
		var report struct{ Status string }
		s.get(ledgerPath+"u/verify", &report)
		if report.Status != "ok" {
			t.Errorf("verification: got the status %q, want ok", report.Status)
		}
		if _, err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.open().ExecContext(t.Context(), `DELETE FROM wallet_key`); err != nil {
			t.Fatal(err)
		}
		s.env = append(slices.Clip(s.env), "WALLET_LEDGER_KEY="+strings.Repeat("cd", 32))
		s.refusesToStart("lacks the key k1")
	})
}

// TestWallet_IsEmptyWithoutMoney uses a user who only pushed an inventory.
func TestWallet_IsEmptyWithoutMoney(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		s := on.newServer(t)
		s.start()
		s.push("poor", 730, []asset{})
		want := map[string]string{
			"/balance": `{"userId":"poor","accounts":[{"currency":"USD","balance":0,"available":0,"held":0,"entries":0}]}`,
			"/entries": `{"items":[],"nextCursor":null}`,
		}
		for path, body := range want {
			if status, response, err := s.call(http.MethodGet, ledgerPath+"poor"+path, nil); status != http.StatusOK || string(response) != body {
				t.Errorf("%s: got %d %s, %v, want 200 %s", path, status, response, err, body)
			}
			if status, response, err := s.call(http.MethodGet, ledgerPath+"unknown"+path, nil); status != http.StatusNotFound {
				t.Errorf("%s of an unknown user: got %d %s, %v, want 404", path, status, response, err)
			}
		}
	})
}
