package audit

import (
	"encoding/binary"
	"reflect"
	"testing"
	"time"

	"assay/internal/randtest"
	"assay/internal/wallet"
)

func TestSorter_OrdersByKeyAndKeepsTheOrderOfOneKey(t *testing.T) {
	r := randtest.New(t)
	for _, hold := range []int{1, 100, 1_000, 0} {
		const n = 2_000
		s := newSorter(hold)
		added := map[int64][]uint32{}
		for i := range uint32(n) {
			key := r.Int64N(200) - 100
			added[key] = append(added[key], i)
			must(t, s.add(key, func(to []byte) []byte {
				return append(binary.BigEndian.AppendUint32(to, i), make([]byte, r.IntN(50))...)
			}))
		}
		sorted, err := s.sorted()
		must(t, err)
		last, seen := int64(-1_000), 0
		for ; ; seen++ {
			key, record, ok, err := sorted.peek()
			must(t, err)
			if !ok {
				break
			}
			if want := added[key]; key < last || len(want) == 0 || want[0] != binary.BigEndian.Uint32(record) {
				t.Fatalf("holding %d, record %d is of %d, after %d; %v are left of it", hold, seen, key, last, want)
			}
			added[key], last = added[key][1:], key
			sorted.take()
		}
		if seen != n {
			t.Errorf("holding %d, %d of %d records", hold, seen, n)
		}
		must(t, s.close())
	}
}

func TestRecord_KeepsAllButSeals(t *testing.T) {
	e := Entry{Entry: wallet.Entry{
		Account: wallet.Account{User: "a user", Currency: "USD"}, Number: 3, Transaction: 1 << 60, Type: "sale", Amount: -5, Balance: 6, Held: 7, Trade: 8,
		Reverses: 2, IdempotencyKey: "k\x00", FeeRule: "r", FeeVersion: 9, At: time.UnixMicro(-10).UTC(), Version: 1, KeyID: "k1",
	}}
	sale := wallet.Transaction{ID: 1 << 60, Kind: "sale", Trade: 8, Reverses: 4, Scope: "s", IdempotencyKey: "k", Note: "n", Entries: 2, At: e.At, Version: 1, KeyID: "k1"}
	for _, p := range []payment{
		{Transaction: &Transaction{Transaction: sale}, id: sale.ID, entries: []Entry{e, {}}},
		{id: 12, entries: []Entry{e}},
		{Transaction: &Transaction{Transaction: sale}, id: sale.ID, entries: []Entry{}},
	} {
		var r recordReader
		for i := range p.entries {
			p.entries[i].At = e.At
		}
		record := putPayment(nil, &p)
		r.read(record)
		if got := r.payment(); r.err != nil || !reflect.DeepEqual(*got, p) {
			t.Errorf("%+v, %v instead of %+v", got, r.err, p)
		}
		for n := range record {
			cut := recordReader{rest: record[:n]}
			if got := cut.payment(); cut.err == nil && reflect.DeepEqual(*got, p) {
				t.Errorf("%d bytes of %d are as good as all", n, len(record))
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestHandOn_WritesInProportionToTheEntries(t *testing.T) {
	written := func(entries int) int {
		v := audit{byTrade: newSorter(1 << 30)}
		p := payment{id: 1, Transaction: &Transaction{}}
		p.Trade = 7
		for i := range entries {
			p.entries = append(p.entries, Entry{Entry: wallet.Entry{Number: 1_000, Trade: int64(1_000 + i)}})
		}
		if err := v.handOn(&p); err != nil {
			t.Fatal(err)
		}
		if n := len(v.byTrade.places); n != entries+1 {
			t.Errorf("%d entries are handed on to %d trades", entries, n)
		}
		return len(v.byTrade.records)
	}
	if few, many := written(500), written(2_000); many > 5*few {
		t.Errorf("%d bytes are written of 500 entries, %d of 2000", few, many)
	}
}
