package idempotency_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/idempotency"
	"assay/internal/wallet"
)

func response(f *dbtest.Fixture) idempotency.Response {
	return idempotency.Response{
		Expires: f.Now.Add(idempotency.Retention), Seal: wallet.Seal{Version: 1, KeyID: "k1", MAC: wallet.Hash{1, 0, 255}},
		Request: idempotency.Digest{1, 2, 0, 255}, Status: 201, ContentType: "application/json", Location: "/there", Body: []byte("{\"a\":\"\x00é\"}"),
	}
}

func store(f *dbtest.Fixture, k idempotency.Key, a idempotency.Response) error {
	return f.DB.InTx(f.Context(), func(tx *db.Tx) error { return idempotency.Store(tx, k, a) })
}

// isStored checks the stored response for a key. If a has no status, it expects none.
func isStored(f *dbtest.Fixture, k idempotency.Key, a idempotency.Response) {
	f.Helper()
	kept, err := idempotency.Find(f.Context(), f.DB, k)
	f.Must(err)
	if (kept == nil) != (a.Status == 0) {
		f.Fatalf("%v: got response %v, want %v", k, kept, a)
	}
	if kept != nil && (kept.Request != a.Request || kept.Status != a.Status || kept.ContentType != a.ContentType ||
		kept.Location != a.Location || !bytes.Equal(kept.Body, a.Body) ||
		!kept.Expires.Equal(a.Expires) || kept.Seal != a.Seal) {
		f.Errorf("%v: got response %v, want %v", k, *kept, a)
	}
}

func TestStore_StoresOneResponsePerKey(t *testing.T) { dbtest.Each(t, storesOnce) }

func storesOnce(f *dbtest.Fixture) {
	k := idempotency.Key{Route: "POST /x", Role: "platform", User: "u", Key: "k"}
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			a := response(f)
			a.Status = 200 + i
			errs[i] = store(f, k, a)
		})
	}
	wg.Wait()
	kept := 0
	for i, err := range errs {
		if err == nil {
			kept++
			want := response(f)
			want.Status = 200 + i
			isStored(f, k, want)
		} else if !errors.Is(err, idempotency.ErrKeyUsed) {
			f.Error(err)
		}
	}
	f.Is("responses stored", kept, 1)
	for _, other := range []idempotency.Key{
		{Route: "POST /y", Role: k.Role, User: k.User, Key: k.Key},
		{Route: k.Route, Role: "admin", User: k.User, Key: k.Key},
		{Route: k.Route, Role: k.Role, User: "", Key: k.Key},
		{Route: k.Route, Role: k.Role, User: k.User, Key: "K"},
	} {
		isStored(f, other, idempotency.Response{})
		f.Must(store(f, other, response(f)))
		isStored(f, other, response(f))
	}
}

func TestDeleteExpired_DeletesExpiredResponses(t *testing.T) { dbtest.Each(t, deletesExpired) }

func deletesExpired(f *dbtest.Fixture) {
	short, money := idempotency.Key{Route: "r", Key: "short"}, idempotency.Key{Route: "r", Key: "money"}
	first := response(f)
	forever := response(f)
	forever.Expires, forever.Body = time.Time{}, []byte{}
	f.Must(store(f, short, first))
	f.Must(store(f, money, forever))
	deleteExpired := func() {
		f.Helper()
		f.Tx(func(tx *db.Tx) error {
			more, err := idempotency.DeleteExpired(tx)
			f.Is("more to delete", more, false)
			return err
		})
	}
	f.Now = f.Now.Add(idempotency.Retention - time.Second)
	deleteExpired()
	isStored(f, short, first)

	f.Now = f.Now.Add(time.Second)
	isStored(f, short, idempotency.Response{}) // expired, but not yet deleted
	f.Must(store(f, short, response(f)))
	isStored(f, short, response(f))

	f.Now = f.Now.Add(100 * idempotency.Retention)
	deleteExpired()
	isStored(f, short, idempotency.Response{})
	isStored(f, money, forever)
	if err := store(f, money, response(f)); !errors.Is(err, idempotency.ErrKeyUsed) {
		f.Errorf("replace a response without expiry: got error %v, want ErrKeyUsed", err)
	}
}
