package storetest

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"assay/internal/db"
	"assay/internal/idempotency"
	"assay/internal/wallet"
)

func (f *fixture) anAnswer() idempotency.Response {
	return idempotency.Response{
		Expires: f.now.Add(idempotency.Retention), Seal: wallet.Seal{Version: 1, KeyID: "k1", MAC: wallet.Hash{1, 0, 255}},
		Request: idempotency.Digest{1, 2, 0, 255}, Status: 201, ContentType: "application/json", Location: "/there", Body: []byte("{\"a\":\"\x00é\"}"),
	}
}

func (f *fixture) keep(k idempotency.Key, a idempotency.Response) error {
	return f.s.InTx(f.Context(), func(tx *db.Tx) error { return idempotency.Store(tx, k, a) })
}

// isKept fails unless the answer of a key is a; an a without a status means none.
func (f *fixture) isKept(k idempotency.Key, a idempotency.Response) {
	f.Helper()
	kept, err := idempotency.Find(f.Context(), f.s, k)
	f.must(err)
	if (kept == nil) != (a.Status == 0) {
		f.Fatalf("the answer of %v is %v, want %v", k, kept, a)
	}
	if kept != nil && (kept.Request != a.Request || kept.Status != a.Status || kept.ContentType != a.ContentType ||
		kept.Location != a.Location || !bytes.Equal(kept.Body, a.Body) ||
		!kept.Expires.Equal(a.Expires) || kept.Seal != a.Seal) {
		f.Errorf("the answer of %v is %v, want %v", k, *kept, a)
	}
}

func answersAreKeptOnce(f *fixture) {
	k := idempotency.Key{Route: "POST /x", Role: "platform", User: "u", Key: "k"}
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			a := f.anAnswer()
			a.Status = 200 + i
			errs[i] = f.keep(k, a)
		})
	}
	wg.Wait()
	kept := 0
	for i, err := range errs {
		if err == nil {
			kept++
			want := f.anAnswer()
			want.Status = 200 + i
			f.isKept(k, want)
		} else if !errors.Is(err, idempotency.ErrKeyUsed) {
			f.Error(err)
		}
	}
	f.is("answers kept", kept, 1)
	for _, other := range []idempotency.Key{
		{Route: "POST /y", Role: k.Role, User: k.User, Key: k.Key},
		{Route: k.Route, Role: "admin", User: k.User, Key: k.Key},
		{Route: k.Route, Role: k.Role, User: "", Key: k.Key},
		{Route: k.Route, Role: k.Role, User: k.User, Key: "K"},
	} {
		f.isKept(other, idempotency.Response{})
		f.must(f.keep(other, f.anAnswer()))
		f.isKept(other, f.anAnswer())
	}
}

func answersAreForgotten(f *fixture) {
	short, money := idempotency.Key{Route: "r", Key: "short"}, idempotency.Key{Route: "r", Key: "money"}
	first := f.anAnswer()
	forever := f.anAnswer()
	forever.Expires, forever.Body = time.Time{}, []byte{}
	f.must(f.keep(short, first))
	f.must(f.keep(money, forever))
	forget := func() {
		f.Helper()
		f.tx(func(tx *db.Tx) error {
			more, err := idempotency.DeleteExpired(tx)
			f.is("there is more", more, false)
			return err
		})
	}
	f.now = f.now.Add(idempotency.Retention - time.Second)
	forget()
	f.isKept(short, first)

	f.now = f.now.Add(time.Second)
	f.isKept(short, idempotency.Response{}) // whether or not it was removed
	f.must(f.keep(short, f.anAnswer()))
	f.isKept(short, f.anAnswer())

	f.now = f.now.Add(100 * idempotency.Retention)
	forget()
	f.isKept(short, idempotency.Response{})
	f.isKept(money, forever)
	if err := f.keep(money, f.anAnswer()); !errors.Is(err, idempotency.ErrKeyUsed) {
		f.Errorf("an answer about money was replaced: %v", err)
	}
}
