package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"assay/internal/wallet"
)

// Guards is that of audit.Records. Lost are triggers that are not there as the
// schema has them: dropped, disabled, or others of that name.
func (l *LedgerSnapshot) Guards() (lost, added []string, err error) {
	guards := l.guardsSQLite
	if l.d == onPostgres {
		guards = l.guardsPostgres
	}
	want, have, err := guards()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have[name] != want[name] {
			lost = append(lost, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if want[name] == "" {
			added = append(added, name)
		}
	}
	return lost, added, nil
}

// ledgerTables are those that nothing is done to but by the service.
const ledgerTables = `('wallet_account', 'wallet_entry', 'wallet_transaction', 'wallet_key', 'wallet_audit', 'trade', 'fee_rule_set')`

// guardsSQLite returns the texts of the triggers that there should be, and of those
// that there are, by "trigger NAME on TABLE".
func (l *LedgerSnapshot) guardsSQLite() (want, have map[string]string, err error) {
	model, err := modelSQLite(l.ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	if want, err = triggersSQLite(l.ctx, model); err != nil {
		return nil, nil, err
	}
	have, err = triggersSQLite(l.ctx, l.tx)
	return want, have, err
}

func triggersSQLite(ctx context.Context, q querier) (map[string]string, error) {
	return triggers(ctx, q, `
		SELECT 'trigger ' || name || ' on ' || lower(tbl_name), sql FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) IN `+ledgerTables)
}

func triggers(ctx context.Context, q querier, query string) (map[string]string, error) {
	out := map[string]string{}
	_, err := collect(ctx, q, func(r *sql.Rows, _ *struct{}) error {
		var name, text string
		err := r.Scan(&name, &text)
		out[name] = text
		return err
	}, query)
	return out, err
}

var (
	triggerText  = regexp.MustCompile(`CREATE TRIGGER (\w+) (BEFORE .*) ON (\w+) EXECUTE FUNCTION (\w+)\(\);`)
	functionText = regexp.MustCompile(`(?s)CREATE FUNCTION (\w+)\(\) RETURNS trigger LANGUAGE plpgsql AS \$\$(.*?)\$\$;`)
)

// guardsPostgres is guardsSQLite for PostgreSQL, which keeps no texts.
func (l *LedgerSnapshot) guardsPostgres() (want, have map[string]string, err error) {
	text, err := migrations.ReadFile(onPostgres.migrations() + "/00001_initial.sql")
	if err != nil {
		return nil, nil, err
	}
	bodies := map[string]string{}
	for _, f := range functionText.FindAllStringSubmatch(string(text), -1) {
		bodies[f[1]] = f[2]
	}
	want = map[string]string{}
	for _, t := range triggerText.FindAllStringSubmatch(string(text), -1) {
		want["trigger "+t[1]+" on "+t[3]] = strings.Join([]string{"A", t[2], bodies[t[4]]}, " ")
	}
	have, err = triggers(l.ctx, l.tx, selectTriggersPostgres)
	return want, have, err
}

// selectTriggersPostgres tells of each trigger whether it always fires, when, and
// what it does; and of rules that they are there.
const selectTriggersPostgres = `
SELECT 'trigger ' || t.tgname || ' on ' || c.relname, concat_ws(' ', t.tgenabled,
	CASE WHEN t.tgqual IS NULL AND t.tgattr = '' AND t.tgtype & 2 <> 0 AND t.tgtype & 1 = 0 THEN 'BEFORE' END,
	concat_ws(' OR ', CASE WHEN t.tgtype & 16 <> 0 THEN 'UPDATE' END, CASE WHEN t.tgtype & 8 <> 0 THEN 'DELETE' END,
		CASE WHEN t.tgtype & 32 <> 0 THEN 'TRUNCATE' END), p.prosrc)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND c.oid = to_regclass(quote_ident(c.relname)) AND c.relname IN ` + ledgerTables + `
UNION ALL
SELECT 'rule ' || r.rulename || ' on ' || c.relname, '' FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
WHERE c.oid = to_regclass(quote_ident(c.relname)) AND c.relname IN ` + ledgerTables

// Keys is that of audit.Records.
func (l *LedgerSnapshot) Keys() ([]wallet.KeyMark, error) {
	return readCells(l, "k.key_id, k.check_mac", func(c *cells) wallet.KeyMark { return wallet.KeyMark{ID: c.text(), Check: c.hash()} },
		`SELECT k.key_id, k.check_mac FROM wallet_key k ORDER BY k.key_id LIMIT 1000`)
}
