package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/wallet"
)

// ledgerKeys checks the configured keys of the ledger against the database.
type ledgerKeys struct {
	cfg   *config.Config
	store *db.DB
}

// open returns the configured keys of the ledger. It stores the wallet.KeyMark of the
// current key and checks all keys against the ledger.
func (k *ledgerKeys) open(ctx context.Context) (*wallet.Ring, error) {
	ring, err := LedgerKeys(k.cfg)
	if err != nil {
		return nil, err
	}
	if err := k.store.InTx(ctx, func(tx *db.Tx) error { return k.storeCurrent(ctx, tx, ring) }); err != nil {
		return nil, err
	}
	return ring, k.checkSeals(ctx, ring)
}

// storeCurrent stores the wallet.KeyMark of the current key. It returns an error if the ring
// lacks a stored key. On a shared database, the first process determines the key. On SQLite, a
// key can be replaced until it has sealed an entry.
func (k *ledgerKeys) storeCurrent(ctx context.Context, tx *db.Tx, ring *wallet.Ring) error {
	known, err := wallet.LedgerKeys(tx)
	if err != nil {
		return err
	}
	for _, id := range ring.Missing(known) {
		used := k.cfg.Database.Engine != config.SQLite
		if !used {
			if used, err = wallet.LedgerKeyUsed(ctx, k.store, id); err != nil {
				return err
			}
		}
		if used {
			return lacksKey(id)
		}
	}
	if slices.Contains(known, ring.Marks()[0]) {
		return nil // no write, so that a start on a full disk succeeds
	}
	return wallet.SetLedgerKey(tx, ring.Marks()[0])
}

func lacksKey(id string) error {
	return config.Faults{{
		Origin: "the wallet ledger", Setting: "WALLET_LEDGER_KEY",
		Problem: fmt.Sprintf("lacks the key %.40s, which seals the ledger, or has a different key with that id: add the original key after the current one", id),
	}}
}

// Numbers of rows that checkSeals reads.
const (
	sampledAccounts     = 1_000
	sampledTransactions = 10 // of the oldest and of the newest transactions
)

// checkSeals checks the keys against a sample of the ledger. It returns an error if a row
// has the id of a missing key, or if a key matches none of the rows with its id. It does not
// use the stored keys, because an attacker can delete them.
func (k *ledgerKeys) checkSeals(ctx context.Context, ring *wallet.Ring) error {
	heads, err := wallet.SomeWallets(ctx, k.store, sampledAccounts)
	if err != nil {
		return err
	}
	first, err := wallet.FirstWalletTransactions(ctx, k.store, sampledTransactions)
	if err != nil {
		return err
	}
	last, err := wallet.LastWalletTransactions(ctx, k.store, sampledTransactions)
	if err != nil {
		return err
	}
	s, proved := ring.Sealer(), map[string]bool{}
	for i := range heads {
		ok, err := s.HeadIntact(&heads[i])
		proved[heads[i].KeyID] = proved[heads[i].KeyID] || ok && err == nil
	}
	for _, t := range slices.Concat(first, last) {
		ok, err := s.TransactionIntact(&t)
		proved[t.KeyID] = proved[t.KeyID] || ok && err == nil
	}
	for _, id := range slices.Sorted(maps.Keys(proved)) {
		if !proved[id] {
			return lacksKey(id)
		}
	}
	return nil
}

// LedgerKeys returns the configured keys of the ledger.
func LedgerKeys(cfg *config.Config) (*wallet.Ring, error) {
	var keys []wallet.Key
	for _, k := range cfg.LedgerKeys {
		bytes, err := hex.DecodeString(k.Key.Reveal())
		if err != nil {
			return nil, errors.New("WALLET_LEDGER_KEY is not hexadecimal") // unreachable: config checks the key
		}
		keys = append(keys, wallet.Key{ID: k.ID, Bytes: bytes})
	}
	return wallet.NewRing(keys)
}
