package audit_test

import (
	"slices"
	"strings"
	"testing"

	"assay/internal/pgtest"
	"assay/internal/store/storetest"
	"assay/internal/wallet/audit"
)

// change is one of the schema, and what a finding says that it is of.
type change struct{ object, sql string }

// TestVerify_ChangesOfTheSchemaAreFound changes, one after the other, what decides which
// rows the ledger reads and writes. Each is found, whatever was changed before.
func TestVerify_ChangesOfTheSchemaAreFound(t *testing.T) {
	w := newWorld(t, "alice")
	w.deposit(in("alice", "USD"), 5)
	if full, r := w.verifyAll(), w.verify("alice", ""); !full.OK || !r.OK {
		t.Fatalf("before: %+v, %+v", full.Failures, r.Failures)
	}
	named := func(found []audit.Finding, object string) bool {
		return slices.ContainsFunc(found, func(f audit.Finding) bool {
			return f.Check == "schema_guard" && strings.Contains(f.Message, ": "+object)
		})
	}
	changes := changesOnPostgres()
	if w.at.Engine == storetest.SQLite {
		changes = changesOnSQLite()
	}
	for _, c := range append(changes, changesOnBoth()...) {
		if full := w.verifyAll(); named(full.Failures, c.object) {
			t.Fatalf("%s fails before it was changed", c.object)
		}
		_, err := w.raw.ExecContext(t.Context(), c.sql)
		w.must(err)
		if full := w.verifyAll(); full.Status != audit.Failed || !named(full.Failures, c.object) {
			t.Errorf("%s is not found: %s, %+v", c.object, full.Status, full.Failures)
		}
	}
	r := w.verify("alice", "")
	expect(t, "of alice", r.OK, r.Status, r.Checks, r.Failures, "schema_guard")
}

func changesOnBoth() []change {
	return []change{
		{"index wallet_transaction_key on wallet_transaction", `DROP INDEX wallet_transaction_key`},
		{"index wallet_transaction_trade on wallet_transaction", `DROP INDEX wallet_transaction_trade; CREATE UNIQUE INDEX wallet_transaction_trade ON wallet_transaction (trade_id, kind, id) WHERE trade_id <> 0`},
		{"table wallet_audit", `ALTER TABLE wallet_audit RENAME TO audit_of_wallets`},
		{"table listing", `ALTER TABLE listing RENAME TO some_listing; CREATE VIEW listing AS SELECT * FROM some_listing WHERE price < 1000`},
	}
}

func changesOnSQLite() []change {
	return []change{
		{"trigger wallet_entry_replace on wallet_entry", `DROP TRIGGER wallet_entry_replace`},
		{"trigger added on wallet_entry", `CREATE TRIGGER added BEFORE INSERT ON Wallet_Entry WHEN NEW.user_id = 'nobody' BEGIN SELECT raise(IGNORE); END`},
		{"trigger trade_delete on trade", `DROP TRIGGER trade_delete; CREATE TRIGGER trade_delete BEFORE DELETE ON trade WHEN OLD.id < 0 BEGIN SELECT raise(ABORT, 'trades are never deleted'); END`},
		{"table wallet_entry", `ALTER TABLE wallet_entry ADD COLUMN more INTEGER`},
		{"table wallet_account", `CREATE TABLE other AS SELECT * FROM wallet_account; DROP TABLE wallet_account; ALTER TABLE other RENAME TO wallet_account`},
		{"view Wallet_Key on wallet_key", `ALTER TABLE wallet_key RENAME TO keys; CREATE VIEW Wallet_Key AS SELECT * FROM keys`},
	}
}

func changesOnPostgres() []change {
	return []change{
		{"trigger wallet_account_kept on wallet_account", `DROP TRIGGER wallet_account_kept ON wallet_account`},
		{"trigger added on wallet_entry", `CREATE TRIGGER added BEFORE INSERT ON wallet_entry FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`},
		{"trigger trade_kept on fee_rule_set", `CREATE TRIGGER trade_kept BEFORE INSERT ON fee_rule_set FOR EACH STATEMENT EXECUTE FUNCTION fee_refuse()`},
		{"trigger trade_kept on trade", `ALTER TABLE trade ENABLE TRIGGER trade_kept`}, // so that session_replication_role disables it
		{"trigger wallet_entry_kept on wallet_entry", `DROP TRIGGER wallet_entry_kept ON wallet_entry;
			CREATE TRIGGER wallet_entry_kept BEFORE DELETE OR TRUNCATE ON wallet_entry EXECUTE FUNCTION wallet_refuse(); ALTER TABLE wallet_entry ENABLE ALWAYS TRIGGER wallet_entry_kept`},
		{"trigger wallet_transaction_kept on wallet_transaction", `DROP TRIGGER wallet_transaction_kept ON wallet_transaction;
			CREATE TRIGGER wallet_transaction_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON wallet_transaction WHEN (1 = 0) EXECUTE FUNCTION wallet_refuse();
			ALTER TABLE wallet_transaction ENABLE ALWAYS TRIGGER wallet_transaction_kept`},
		{"trigger fee_rule_set_kept on fee_rule_set", `CREATE OR REPLACE FUNCTION fee_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`},
		{"rule added on wallet_entry", `CREATE RULE added AS ON INSERT TO wallet_entry WHERE new.user_id = 'nobody' DO INSTEAD NOTHING`},
		{"policy added on wallet_entry", `CREATE POLICY added ON wallet_entry USING (user_id <> 'mallory')`},
		{"table wallet_entry", `ALTER TABLE wallet_entry ENABLE ROW LEVEL SECURITY`},
		{"table wallet_transaction", `ALTER TABLE wallet_transaction FORCE ROW LEVEL SECURITY`},
		{"table wallet_key", `ALTER TABLE wallet_key OWNER TO pg_monitor`},
		{"table wallet_account", `ALTER TABLE wallet_account SET UNLOGGED`},
		{"constraint wallet_account_pkey on wallet_account", `ALTER TABLE wallet_account DROP CONSTRAINT wallet_account_pkey`},
		{"constraint wallet_entry_pkey on wallet_entry", `ALTER TABLE wallet_entry DROP CONSTRAINT wallet_entry_pkey;
			ALTER TABLE wallet_entry ADD CONSTRAINT wallet_entry_pkey PRIMARY KEY (user_id, currency, number) DEFERRABLE`},
		{"constraint added on wallet_entry", `ALTER TABLE wallet_entry ADD CONSTRAINT added CHECK (amount < 1000000)`},
		{"index added on wallet_entry", `CREATE FUNCTION f(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1'; CREATE INDEX added ON wallet_entry (f(user_id))`},
		{"index wallet_transaction_reverses on wallet_transaction", `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'wallet_transaction_reverses'::regclass`},
		{"inheritance of wallet_account", `CREATE TABLE more () INHERITS (wallet_account)`},
		{"column amount of wallet_entry", `ALTER TABLE wallet_entry ALTER COLUMN amount SET DEFAULT 1`},
		{"column hash of wallet_entry", `ALTER TABLE wallet_entry ALTER COLUMN hash DROP NOT NULL`},
		{"relation public.wallet_key", `CREATE SCHEMA postgres; CREATE TABLE postgres.wallet_key (LIKE wallet_key INCLUDING ALL)`},
		{"relation pg_temp_", `CREATE TEMPORARY TABLE wallet_account (LIKE wallet_account INCLUDING ALL)`},
	}
}

func TestVerify_AnIndexOfAnOperatorIsNoChange(t *testing.T) {
	w := newWorld(t, "alice")
	w.deposit(in("alice", "USD"), 5)
	w.exec(`CREATE INDEX reports ON wallet_entry (at, type) WHERE trade_id <> 0`)
	if full := w.verifyAll(); !full.OK {
		t.Errorf("%+v", full.Failures)
	}
}

// TestVerify_RowSecurityHidesNothing is an attack of the application's own role, which
// has no key: a user is paid out twice, since postings see the accounts as they were
// before, and the verification would see them as they were sealed last.
func TestVerify_RowSecurityHidesNothing(t *testing.T) {
	at := storetest.NewDatabase(t)
	if at.Engine == storetest.SQLite {
		t.Skip("SQLite has no row security")
	}
	server := pgtest.Shared(t)
	at.URL = server.NewDatabase(t)
	server.Exec(t, `DO $$ BEGIN CREATE ROLE application LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`)
	server.Exec(t, `ALTER DATABASE `+at.URL[strings.LastIndex(at.URL, "@/")+2:strings.Index(at.URL, "?")]+` OWNER TO application`)
	at.URL = strings.Replace(at.URL, "postgres@", "application@", 1)
	w := newWorldAt(t, at, "alice")
	w.deposit(in("alice", "USD"), 200)
	w.withdraw(in("alice", "USD"), 100)
	w.exec(`CREATE TABLE before AS SELECT * FROM wallet_account`)
	w.withdraw(in("alice", "USD"), 100)
	if full := w.verifyAll(); !full.OK {
		t.Fatalf("before: %+v", full.Failures)
	}
	for _, table := range []string{"wallet_account", "wallet_entry"} {
		w.exec(`ALTER TABLE ` + table + ` DROP CONSTRAINT ` + table + `_pkey`)
	}
	w.exec(`CREATE TABLE shown AS SELECT mac FROM wallet_account`)
	w.exec(`CREATE TABLE posted AS SELECT id FROM wallet_transaction`)
	w.exec(`INSERT INTO wallet_account SELECT * FROM before WHERE mac NOT IN (SELECT mac FROM shown)`)
	const reading = `current_setting('transaction_read_only')::boolean`
	w.exec(`CREATE POLICY accounts ON wallet_account USING (` + reading + ` = (mac IN (SELECT mac FROM shown)))`)
	w.exec(`CREATE POLICY entries ON wallet_entry USING (NOT ` + reading + ` OR transaction_id IN (SELECT id FROM posted))`)
	w.exec(`CREATE POLICY transactions ON wallet_transaction USING (NOT ` + reading + ` OR id IN (SELECT id FROM posted))`)
	for _, table := range []string{"wallet_account", "wallet_entry", "wallet_transaction"} {
		w.exec(`ALTER TABLE ` + table + ` ENABLE ROW LEVEL SECURITY`)
		w.exec(`ALTER TABLE ` + table + ` FORCE ROW LEVEL SECURITY`)
	}
	w.withdraw(in("alice", "USD"), 100) // a hundred more than there is
	full, r := w.verifyAll(), w.verify("alice", "")
	expect(t, "of everything", full.OK, full.Status, full.Checks, full.Failures, "schema_guard")
	expect(t, "of alice", r.OK, r.Status, r.Checks, r.Failures, "schema_guard")
	for _, c := range slices.Concat(full.Checks, r.Checks) {
		if c.Name == "schema_guard" && c.Failures < 10 || c.Name != "schema_guard" && c.Status != audit.Skipped {
			t.Errorf("%+v", c)
		}
	}
}
