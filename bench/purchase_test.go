package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	tradingUsers = 500
	tradeRiches  = 1_000_000_000 // in minor units
	tradePrice   = 1_000
	maxListed    = 500 // per request
)

// BenchmarkPurchase buys listings between many users over HTTP from a server in this process.
// Client, server and database share the processors.
//
//	go test ./bench -run '^$' -bench Purchase -benchtime 5000x -database postgres
//
// Besides sales per second, it reports the processor time per sale. This figure is comparable
// between runs even if other programs use the machine. Like BenchmarkRefresh, it prints
// PostgreSQL's time per statement.
func BenchmarkPurchase(b *testing.B) {
	w := worldWithin(b, size{names: 100, markets: 1, rows: 100})
	w.enrich(b)
	var rounds int
	for _, buyers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("%d buyers", buyers), func(b *testing.B) {
			rounds++
			purchases := w.listed(b, rounds, b.N)
			w.countStatements(b)
			defer startProfile(b)()
			before := w.computed(b)
			b.ResetTimer()
			if err := w.sendAll(purchases, buyers); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sales/s")
			b.ReportMetric(float64((w.computed(b)-before).Microseconds())/float64(b.N), "cpu-µs/sale")
			w.logStatements(b)
		})
	}
}

func tradingUser(n int) string { return fmt.Sprint("trader-", n%tradingUsers) }

// enrich gives every user a balance.
func (w *world) enrich(b *testing.B) {
	b.Helper()
	deposits := make([][]byte, tradingUsers)
	for n := range deposits {
		deposits[n] = w.keyed(b, "/api/functions/admin/wallet-ledger/"+tradingUser(n)+"/entries", "riches",
			fmt.Sprintf(`{"kind":"deposit","currency":"USD","amount":%d}`, tradeRiches))
	}
	if err := w.sendAll(deposits, 4); err != nil {
		b.Fatal(err)
	}
}

// listed creates listings of all users. It returns n requests to buy them. Successive requests
// have different buyers.
func (w *world) listed(b *testing.B, round, n int) (purchases [][]byte) {
	b.Helper()
	each := min((n+tradingUsers-1)/tradingUsers, maxListed)
	ids := make([][]string, tradingUsers)
	for user := range tradingUsers {
		var assets []asset
		var offers []map[string]any
		for i := range each {
			a := newAsset(round*1_000_000_000+user*maxListed+i, w.sim.names[(user+i)%w.names])
			assets = append(assets, a)
			offers = append(offers, map[string]any{"assetId": a.AssetID, "price": tradePrice, "currency": "USD"})
		}
		body, err := json.Marshal(map[string]any{
			"userId": tradingUser(user), "appId": 730, "contextId": "2", "items": offers, "inventory": map[string]any{"items": assets},
		})
		if err != nil {
			b.Fatal(err)
		}
		var made struct {
			Items []struct{ Listing struct{ ID string } }
		}
		if err := w.server.call(b.Context(), http.MethodPost, "/api/listings/batch", body, &made); err != nil {
			b.Fatal(err)
		}
		for _, l := range made.Items {
			ids[user] = append(ids[user], l.Listing.ID)
		}
	}
	for i := range n {
		seller, nth := i%tradingUsers, i/tradingUsers
		buyer := seller + 1 + (i*7_919)%(tradingUsers-1)
		purchases = append(purchases, w.keyed(b, "/api/listings/"+ids[seller][nth]+"/purchase", fmt.Sprint("buy ", round, i),
			fmt.Sprintf(`{"buyerId":%q}`, tradingUser(buyer))))
	}
	return purchases
}

// keyed returns the bytes of a request with an Idempotency-Key.
func (w *world) keyed(b *testing.B, path, key, body string) []byte {
	b.Helper()
	text, err := request(http.MethodPost, w.server.addr, path, w.server.token, []byte(body))
	if err != nil {
		b.Fatal(err)
	}
	return bytes.Replace(text, []byte("\r\n\r\n"), []byte("\r\nIdempotency-Key: "+key+"\r\n\r\n"), 1)
}

// sendAll sends each request once, over the given number of connections.
func (w *world) sendAll(requests [][]byte, connections int) error {
	errs := make([]error, connections)
	var next atomic.Int64
	var wg sync.WaitGroup
	for n := range connections {
		wg.Go(func() { errs[n] = sendNext(w.server.addr, requests, &next) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// sendNext sends requests over one connection. The connections share the counter next, so each
// request is sent once.
func sendNext(addr string, requests [][]byte, next *atomic.Int64) error {
	conn, err := net.DialTimeout("tcp", addr, time.Minute)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReaderSize(conn, 64<<10)
	for i := next.Add(1); i <= int64(len(requests)); i = next.Add(1) {
		if _, err := conn.Write(requests[i-1]); err != nil {
			return err
		}
		if err := skipResponse(in); err != nil {
			return err
		}
	}
	return nil
}

// computed returns the processor time of this process and of the database sessions.
func (w *world) computed(b *testing.B) (total time.Duration) {
	b.Helper()
	pids := []int64{int64(os.Getpid())}
	if e, ok := w.engine.(postgres); ok {
		if err := eachRow(b.Context(), e.admin, `SELECT pid FROM pg_stat_activity`, func(_ int, scan func(...any) error) error {
			pids = append(pids, 0)
			return scan(&pids[len(pids)-1])
		}); err != nil {
			b.Fatal(err)
		}
	}
	const tick = 10 * time.Millisecond // the same on every Linux system
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // the process has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // skip the name
		fields := strings.Fields(rest)
		for _, ticks := range fields[11:13] { // user and system time
			n, err := strconv.Atoi(ticks)
			if err != nil {
				b.Fatal(err)
			}
			total += time.Duration(n) * tick
		}
	}
	return total
}
