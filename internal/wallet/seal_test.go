package wallet

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"
)

// newTestRing returns a ring with a key for each id. The bytes of a key repeat the last letter of its id.
func newTestRing(tb testing.TB, ids ...string) *Ring {
	tb.Helper()
	var keys []Key
	for _, id := range ids {
		keys = append(keys, Key{ID: id, Bytes: []byte(strings.Repeat(id[len(id)-1:], 32))})
	}
	r, err := NewRing(keys)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// countingKey returns a ring with the key 00 01 02 .. 1f.
func countingKey(tb testing.TB, id string) *Ring {
	tb.Helper()
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i)
	}
	r, err := NewRing([]Key{{ID: id, Bytes: key}})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func filled(b byte) (h Hash) {
	for i := range h {
		h[i] = b
	}
	return h
}

// An independent program computed the expected bytes and seals from the description in
// docs/contribute/ledger.md. They must never change, because existing seals must stay
// valid.
func TestCanonical_IsStable(t *testing.T) {
	at := time.UnixMicro(1795267801000001).UTC()
	sold := Entry{
		Account: Account{User: "u1", Currency: "USD"}, Number: 7, Transaction: 42, Type: TypeSale, Amount: 8700, Balance: 18700, Held: 8700,
		Trade: 9, IdempotencyKey: "order-1|B", FeeRule: "std", FeeVersion: 3, At: at, Posting: filled(0xcc), Previous: filled(0xaa),
	}
	odd := Entry{
		Account: Account{User: "ü|日本", Currency: "JPY"}, Number: 1, Transaction: 1, Type: TypeReversal, Amount: -1, Balance: -MaxBalance,
		Reverses: 12, At: time.UnixMicro(-1).UTC(),
	}
	head := Head{Account: Account{User: "u1", Currency: "USD"}, Balance: 18700, Held: 8700, Number: 7, Hash: filled(0xbb)}
	tx := Transaction{ID: 42, Kind: KindSale, Trade: 9, Scope: "POST x admin u1", IdempotencyKey: "order-1|B", Entries: 3, At: at, Terms: filled(0xdd)}
	traded := Trade{
		ID: 9, Listing: 8, Seller: "u1", Buyer: "ü2", AppID: 730, ContextID: "2", AssetID: "a1", Item: 5, Amount: 1, Price: 10000, Currency: "USD",
		PaymentMethod: "card", Country: "DE", Fee: 1300, Net: 8700, FeeRule: "std", FeeVersion: 3, Transaction: 42, State: "completed",
		CreatedAt: at, CompletedAt: at.Add(time.Microsecond), SettleAt: at.Add(2 * time.Microsecond), Volume: 10_000_000,
	}
	rules := Rules{Number: 4, Digest: "ab12", Source: "https://x/fees", Mark: `"etag"`, At: at, By: "admin", Previous: filled(0xaa)}
	responded := StoredResponse{
		Route: "POST /x/{id}", Role: "platform", User: "ü2", Key: "order-1|B", Request: filled(0xaa), Status: 409,
		ContentType: "application/problem+json", Location: "/there", Body: []byte("{\"a\":\"\x00é\"}"), Expires: at,
	}
	for _, c := range []struct {
		name, key   string
		seal        func(*Sealer) (record, Hash)
		bytes, hash string
	}{
		{
			"an entry", "k1", func(s *Sealer) (record, Hash) { s.SealEntry(&sold); return &sold, sold.Hash },
			"77616c6c65742d656e7472792f763100" + strings.Repeat("aa", 32) + "0000000101" + "000000027531" + "00000003555344" +
				"000000080000000000000007" + "00000008000000000000002a" + "0000000473616c65" + "0000000800000000000021fc" +
				"00000008000000000000490c" + "0000000800000000000021fc" + "000000080000000000000009" + "000000080000000000000000" +
				"000000096f726465722d317c42" + "00000003737464" + "000000080000000000000003" + "00000008000660c95b8e2841" + "00000020" + strings.Repeat("cc", 32) + "000000026b31",
			"aa86d92bda92a49a401a1d2f360b326716753ee87c348fbbc8a8e8d7c58bb9ed",
		},
		{
			"the first entry of an account", "2026-b", func(s *Sealer) (record, Hash) { s.SealEntry(&odd); return &odd, odd.Hash },
			"77616c6c65742d656e7472792f763100" + strings.Repeat("00", 32) + "0000000101" + "00000009c3bc7ce697a5e69cac" + "000000034a5059" +
				"000000080000000000000001" + "000000080000000000000001" + "00000008726576657273616c" + "00000008ffffffffffffffff" +
				"00000008ffe0000000000001" + "000000080000000000000000" + "000000080000000000000000" + "00000008000000000000000c" +
				"00000000" + "00000000" + "000000080000000000000000" + "00000008ffffffffffffffff" + "00000020" + strings.Repeat("00", 32) + "00000006323032362d62",
			"95defa7f433a62cfd5365ec53807eaaa44480e815f904a05b8d8d68628357e49",
		},
		{
			"a head", "k1", func(s *Sealer) (record, Hash) { s.SealHead(&head); return &head, head.MAC },
			"77616c6c65742d686561642f763100" + "0000000101" + "000000027531" + "00000003555344" + "00000008000000000000490c" +
				"0000000800000000000021fc" + "000000080000000000000007" + "00000020" + strings.Repeat("bb", 32) + "000000026b31",
			"650e23601bb97fa714538e219085abbc34fd72e7f49953ac401b8a0f6c3af7b8",
		},
		{
			"a transaction", "k1", func(s *Sealer) (record, Hash) { s.SealTransaction(&tx); return &tx, tx.Hash },
			"77616c6c65742d7472616e73616374696f6e2f763100" + "0000000101" + "00000008000000000000002a" + "0000000473616c65" +
				"000000080000000000000009" + "000000080000000000000000" + "0000000f504f535420782061646d696e207531" +
				"000000096f726465722d317c42" + "00000000" + "000000080000000000000003" + "00000008000660c95b8e2841" + "00000020" + strings.Repeat("dd", 32) + "000000026b31",
			"37dc75d303af02a51067055cc521b4b24af5965b64c27891be71bf2e79d70970",
		},
		{
			"a trade", "k1", func(s *Sealer) (record, Hash) { s.Seal(&traded); return &traded, traded.MAC },
			"77616c6c65742d74726164652f763100000000010100000008000000000000000900000008000000000000000800000002753100000003c3bc320000000800000000000002da00000001320000000261310000000800000000000000050000000800000000000000010000000800000000000027100000000355534400000004636172640000000244450000000800000000000005140000000800000000000021fc0000000373746400000008000000000000000300000008000000000000002a00000009636f6d706c6574656400000008000660c95b8e284100000008000660c95b8e284200000008000660c95b8e2843000000080000000000000000000000080000000000000000000000080000000000989680000000080000000000000000000000026b31",
			"386fe525034420dd9f38f8bcaf8dee1c2efcfe9efb122358e78a71801379fbf9",
		},
		{
			"a version of the fee rules", "k1", func(s *Sealer) (record, Hash) { s.Seal(&rules); return &rules, rules.MAC },
			"77616c6c65742d6665652d72756c65732f763100aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa000000010100000008000000000000000400000004616231320000000e68747470733a2f2f782f666565730000000622657461672200000008000660c95b8e28410000000561646d696e000000026b31",
			"ca64863531f763a83a34d7f09958b6fde1268eae7573a9dba79f4dbf307f2be6",
		},
		{
			"a response", "k1", func(s *Sealer) (record, Hash) { s.Seal(&responded); return &responded, responded.MAC },
			"77616c6c65742d726573706f6e73652f76310000000001010000000c504f5354202f782f7b69647d00000008706c6174666f726d00000003c3bc32000000096f726465722d317c4200000020aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa000000080000000000000199000000186170706c69636174696f6e2f70726f626c656d2b6a736f6e000000062f74686572650000000b7b2261223a2200c3a9227d00000008000660c95b8e2841000000026b31",
			"3609e0647c7281005e8644343d86c7eae37d1eeac0ab72ab4be6f24452dcc8e9",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, hash := c.seal(countingKey(t, c.key).Sealer())
			if got := hex.EncodeToString(canonical(nil, r)); got != c.bytes {
				t.Errorf("sealed bytes: got\n%s, want\n%s", got, c.bytes)
			}
			if hash.String() != c.hash {
				t.Errorf("seal: got %s, want %s", hash, c.hash)
			}
		})
	}
}

// An independent program computed the expected digest.
func TestTerms_AreStable(t *testing.T) {
	at := time.UnixMicro(1795267801000001).UTC()
	traded := Trade{
		ID: 9, Listing: 8, Seller: "u1", Buyer: "ü2", AppID: 730, ContextID: "2", AssetID: "a1", Item: 5, Amount: 1, Price: 10000, Currency: "USD",
		PaymentMethod: "card", Country: "DE", Fee: 1300, Net: 8700, FeeRule: "std", FeeVersion: 3, Transaction: 42, State: "completed",
		CreatedAt: at, CompletedAt: at.Add(time.Microsecond), SettleAt: at.Add(2 * time.Microsecond), Volume: 10_000_000,
	}
	const want = "d75f5e7465c440688067905ab541a1d4bbf2862fb6e9937f5ca8a23699dbdabf"
	if got := traded.Terms(); got.String() != want {
		t.Errorf("terms: got %s, want %s", got, want)
	}
	newTestRing(t, "k1").Sealer().Seal(&traded)
	traded.State, traded.Transaction = "settled", 43
	if got := traded.Terms(); got.String() != want {
		t.Errorf("terms after a change of state, transaction and seal: got %s, want no change", got)
	}
}

func TestSealer_DetectsEveryChangedField(t *testing.T) {
	s := newTestRing(t, "k1", "k2").Sealer()
	sealed := Entry{
		Account: Account{User: "A|B", Currency: "USD"}, Number: 2, Transaction: 3, Type: TypeDeposit, Amount: 5, Balance: 6, Held: 1, Trade: 7,
		Reverses: 1, IdempotencyKey: "C", FeeRule: "r", FeeVersion: 4, At: time.UnixMicro(9), Previous: filled(1),
	}
	s.SealEntry(&sealed)
	if ok, err := s.EntryIntact(&sealed); !ok || err != nil {
		t.Fatalf("unchanged entry: got intact %t, error %v, want true", ok, err)
	}
	for name, change := range map[string]func(*Entry){
		"user":        func(e *Entry) { e.User = "A" },
		"shifted":     func(e *Entry) { e.User, e.Currency = "A|BU", "SD" },
		"currency":    func(e *Entry) { e.Currency = "EUR" },
		"number":      func(e *Entry) { e.Number = 1 },
		"transaction": func(e *Entry) { e.Transaction++ },
		"type":        func(e *Entry) { e.Type = TypeFree },
		"amount":      func(e *Entry) { e.Amount++ },
		"balance":     func(e *Entry) { e.Balance++ },
		"held":        func(e *Entry) { e.Held-- },
		"trade":       func(e *Entry) { e.Trade = 0 },
		"reverses":    func(e *Entry) { e.Reverses = 0 },
		"key":         func(e *Entry) { e.IdempotencyKey = "c" },
		"fee rule":    func(e *Entry) { e.FeeRule = "" },
		"fee version": func(e *Entry) { e.FeeVersion = 5 },
		"time":        func(e *Entry) { e.At = e.At.Add(time.Microsecond) },
		"version":     func(e *Entry) { e.Version++ },
		"key id":      func(e *Entry) { e.KeyID = "k2" },
		"posting":     func(e *Entry) { e.Posting[0]++ },
		"previous":    func(e *Entry) { e.Previous[31]++ },
		"hash":        func(e *Entry) { e.Hash[0]++ },
	} {
		e := sealed
		change(&e)
		if ok, err := s.EntryIntact(&e); ok || err != nil {
			t.Errorf("changed %s: got intact %t, error %v, want false", name, ok, err)
		}
	}
}

func TestRing_VerifiesSealsOfOlderKeys(t *testing.T) {
	h := Head{Account: Account{User: "u", Currency: "EUR"}, Balance: 3}
	newTestRing(t, "old").Sealer().SealHead(&h)
	if ok, err := newTestRing(t, "new", "old").Sealer().HeadIntact(&h); !ok || err != nil {
		t.Errorf("HeadIntact with the new and the old key = %t, %v, want true and no error", ok, err)
	}
	if _, err := newTestRing(t, "new").Sealer().HeadIntact(&h); !errors.Is(err, ErrNoKey) {
		t.Errorf("HeadIntact without the old key: got error %v, want ErrNoKey", err)
	}
	newTestRing(t, "new", "old").Sealer().SealHead(&h)
	if h.KeyID != "new" {
		t.Errorf("SealHead: got a seal with the key %s, want the first key", h.KeyID)
	}
}

func TestNewRing_RejectsInvalidKeys(t *testing.T) {
	good := Key{ID: "k1", Bytes: make([]byte, 32)}
	for name, keys := range map[string][]Key{
		"none":       nil,
		"short":      {{ID: "k1", Bytes: make([]byte, 31)}},
		"without id": {{Bytes: make([]byte, 32)}},
		"twice":      {good, good},
	} {
		if _, err := NewRing(keys); err == nil {
			t.Errorf("NewRing with keys %q: got no error, want one", name)
		}
	}
}

func TestRing_DistinguishesKeysWithTheSameID(t *testing.T) {
	known := newTestRing(t, "k1", "k2").Marks()
	if missing := newTestRing(t, "k3", "k2", "k1").Missing(known); missing != nil {
		t.Errorf("missing keys: got %v, want none", missing)
	}
	other, err := NewRing([]Key{{ID: "k1", Bytes: []byte(strings.Repeat("x", 32))}})
	if err != nil {
		t.Fatal(err)
	}
	if missing := other.Missing(known); len(missing) != 2 {
		t.Errorf("missing keys: got %v, want both", missing)
	}
}
