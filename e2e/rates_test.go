package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/app"
)

// TestRates_InstancesShareBankRates uses the exchange rates of a bank that responds once. Two
// instances on PostgreSQL, or one restarted instance on SQLite, convert with these rates. The
// rates are old, and the server must report them as old.
func TestRates_InstancesShareBankRates(t *testing.T) { onBoth(t, testRates) }

func testRates(t *testing.T, on engine) {
	var requested atomic.Int64
	date := time.Now().UTC().AddDate(0, 0, -5).Format(time.DateOnly)
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requested.Add(1); r.URL.Path != "/stats/eurofxref/eurofxref-daily.xml" {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, `<E><Cube><Cube time='%s'><Cube currency='USD' rate='1.0834'/><Cube currency='JPY' rate='163.45'/></Cube></Cube></E>`, date)
	}))
	defer bank.Close()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "list.csv"), string(csvList([]string{"A"}, 1000)))
	config := filepath.Join(dir, "lists.json")
	writeFile(t, config, fmt.Sprintf(`{"lists":[{"key":"list","location":%q,"format":"csv","appId":730,"currency":"EUR","name":"name",
		"markets":[{"key":"m","ask":"price"}]}]}`, filepath.Join(dir, "list.csv")))
	env := []string{"MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG=" + config, "MARKET_PRICE_RATES=ecb,RUB=0.0105@" + date, "ECB_BASE_URL=" + bank.URL}
	first := on.newServer(t, env...)
	began := first.within(app.Options{})
	first.push("u", 730, []asset{{AssetID: "1", MarketHashName: "A"}})
	first.awaitPriced()
	first.converts(date)

	bank.Close()
	second := first
	if on == onPostgres {
		second = newServerOn(t, first.database, env...)
	} else if _, err := began.end(); err != nil {
		t.Fatal(err)
	}
	second.within(app.Options{})
	second.refresh()
	second.awaitEnd()
	second.converts(date)
	if n := requested.Load(); n != 1 {
		t.Errorf("got %d requests to the bank, want 1", n)
	}
	// Either instance may have planned the run.
	if !strings.Contains(first.log.String()+second.log.String(), "exchange rates are more than three days old") {
		t.Error("got no warning about old rates, want one")
	}
}

// converts checks the explanation of a price of 10 euros, and the reported rates.
func (s *server) converts(date string) {
	s.t.Helper()
	var item struct {
		CurrentPrice float64
		Snapshots    []struct {
			Currency, RateDate string
			LowestAsk, Rate    float64
			RateOld, Used      bool
		}
	}
	s.get("/api/prices/items/A", &item)
	if q := item.Snapshots; item.CurrentPrice != 10.834 || len(q) != 1 || q[0].Currency != "EUR" || q[0].LowestAsk != 10 ||
		q[0].Rate != 1.0834 || q[0].RateDate != date+"T00:00:00Z" || !q[0].RateOld || !q[0].Used {
		s.t.Errorf("got item %+v, want 10.834 from the old rate of the day", item)
	}
	var debug struct {
		ExchangeRates struct {
			From      string
			Old       bool
			LastError *string
			Rates     []struct {
				Currency string
				Old      bool
			}
		}
	}
	s.get("/api/market-prices/provider-debug", &debug)
	if r := debug.ExchangeRates; r.From != "ecb" || !r.Old || r.LastError != nil || len(r.Rates) != 3 {
		s.t.Errorf("got rates %+v, want three old rates from ecb", r)
	}
}

// TestRates_FixedRatesOfKeysAndMetal prices a Team Fortress 2 item that is quoted in two
// currencies without bank rates. Without fixed rates no command starts.
func TestRates_FixedRatesOfKeysAndMetal(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "tf2.csv"), "name,keys,metal\nThe Team Captain,10,640\n")
		lists := filepath.Join(dir, "lists.json")
		writeFile(t, lists, fmt.Sprintf(`{"lists":[{"key":"tf2","location":%q,"format":"csv","appId":440,"currency":"KEY","name":"name",
			"markets":[{"key":"keys","ask":"keys"},{"key":"metal","ask":"metal","currency":"REF"}]}]}`, filepath.Join(dir, "tf2.csv")))
		env := []string{"MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG=" + lists}
		for _, command := range []string{"serve", "config"} {
			if _, errs := on.newServer(t, append(env, "MARKET_PRICE_RATES=ecb,REF=0.029@2026-11-20")...).command(2, command); !strings.Contains(errs, "no rate for KEY, the currency of pricelist/keys") {
				t.Errorf("assay %s without a rate: got %s, want an error about the missing rate for KEY", command, errs)
			}
		}
		s := on.newServer(t, append(env, "MARKET_PRICE_RATES=KEY=1.85@2026-11-20,REF=0.029@2026-11-20")...)
		s.start()
		s.pushRaw("u", 440, []map[string]any{{"assetId": "1", "marketHashName": "The Team Captain"}})
		s.awaitPriced()
		var d detail
		s.get("/api/prices/items/The%20Team%20Captain?appId=440", &d)
		if d.CurrentPrice != "18.53" || d.UsedMarkets != 2 { // (10 x 1.85 + 640 x 0.029) / 2
			t.Errorf("got item %+v, want 18.53 from 2 markets", d)
		}
	})
}
