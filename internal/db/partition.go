package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// On PostgreSQL, the inventory is an ordinary table or has native partitions by a hash of
// the user. The migrations create the table, and PartitionInventory converts it. Statements
// are the same for both layouts. The primary key of partitions is (id, user_key), because
// PostgreSQL requires the partition column in it. One sequence assigns all ids, so that
// they stay unique.

// MaxPartitions is the greatest number of partitions of the inventory.
const MaxPartitions = 64

// ErrInventoryExtended means that the table has objects that a conversion would drop.
var ErrInventoryExtended = errors.New("the table inventory has triggers, rules, policies, publications or column privileges: " +
	"drop them, convert the table, and create them again")

// PartitionInventory divides the inventory into parts, or makes it an ordinary table if
// parts is 1. It copies all rows in one transaction. It returns ErrDatabaseInUse if a
// server uses the database, and does nothing if the inventory already has that number of
// parts.
func PartitionInventory(ctx context.Context, o Options, parts int, lease time.Duration) (err error) {
	if parts < 1 || parts > MaxPartitions {
		return fmt.Errorf("the inventory cannot have %d partitions: use 1 to %d", parts, MaxPartitions)
	}
	db, other, err := openPostgres(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), other.Close()) }()
	if err := requireSchema(ctx, PostgreSQL, db); err != nil {
		return err
	}
	return repartition(ctx, db, parts, lease)
}

// repartition is PartitionInventory for a database with any version of the schema.
func repartition(ctx context.Context, db *sql.DB, parts int, lease time.Duration) (err error) {
	if have, err := inventoryPartsPostgres(ctx, db); err != nil || have == parts {
		return err
	}
	instances := &copySource{d: PostgreSQL, db: db}
	if err := instances.awaitIdle(ctx, lease); err != nil {
		return inUse(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // a lost connection ends the transaction too
		}
	}()
	if err := lockForConversion(ctx, tx); err != nil {
		return err
	}
	if err := instances.checkUnused(ctx); err != nil {
		return inUse(err)
	}
	// Another process may have converted the table while this one waited for the lock.
	if have, err := inventoryPartsPostgres(ctx, tx); err != nil || have == parts {
		return errors.Join(err, tx.Rollback())
	}
	if err := convertInventoryPostgres(ctx, tx, parts); err != nil {
		return fmt.Errorf("partition the inventory: %w", err)
	}
	return tx.Commit()
}

func inUse(err error) error {
	if errors.Is(err, ErrSourceInUse) {
		return ErrDatabaseInUse
	}
	return err
}

// lockForConversion keeps servers from starting and other processes from using the
// inventory. A transaction that began before the conversion would not see the copied rows.
// It locks the table instance first, because a server registers its instance before it uses
// the inventory.
func lockForConversion(ctx context.Context, tx *sql.Tx) error {
	if err := disableTimeoutsPostgres(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(schemaLock)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `LOCK TABLE `+instanceTable+` IN EXCLUSIVE MODE; LOCK TABLE inventory IN ACCESS EXCLUSIVE MODE`)
	return err
}

// inventoryPartsPostgres returns the number of partitions of the inventory, or 1 if it is an
// ordinary table.
func inventoryPartsPostgres(ctx context.Context, q Querier) (int, error) {
	n, err := First(Collect(ctx, q, func(r *sql.Rows, n *int) error { return r.Scan(n) },
		`SELECT greatest(1, count(*)) FROM pg_inherits WHERE inhparent = to_regclass('inventory')`))
	if err != nil {
		return 0, err
	}
	return *n, nil
}

// partitionName returns the name of a partition. It contains the number of partitions, so
// that the old and the new partitions have different names while rows are copied.
func partitionName(parts, part int) string { return fmt.Sprintf("inventory_%d_%02d", parts, part) }

// convertInventoryPostgres replaces the table with a new one that has the given number of parts
// and the same rows, columns, indexes, storage parameters, owner and privileges.
func convertInventoryPostgres(ctx context.Context, tx *sql.Tx, parts int) error {
	var extended bool
	if err := tx.QueryRowContext(ctx, selectExtendedPostgres).Scan(&extended); err != nil {
		return err
	}
	if extended {
		return ErrInventoryExtended
	}
	var owner, parameters string
	if err := tx.QueryRowContext(ctx, selectStoragePostgres).Scan(&owner, &parameters); err != nil {
		return err
	}
	dependents, err := Collect(ctx, tx, func(r *sql.Rows, s *string) error { return r.Scan(s) }, selectDependentsPostgres)
	if err != nil {
		return err
	}
	last, err := lastIDPostgres(ctx, tx, copyTable{name: "inventory", columns: []copyColumn{{name: "id", identity: true}}})
	if err != nil {
		return err
	}
	statements := slices.Concat(newTables(parts, owner, parameters), []string{
		`INSERT INTO inventory SELECT * FROM inventory_before ORDER BY id`,
		`DROP TABLE inventory_before`,
		`ALTER TABLE inventory ADD PRIMARY KEY ` + inventoryKey(parts),
		`ALTER TABLE inventory ALTER id ADD GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME inventory_id_seq)`,
	}, dependents, []string{`ANALYZE inventory`})
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `SELECT setval('inventory_id_seq', $1) WHERE $1 > 0`, last)
	return err
}

// newTables returns the statements that rename the old table and create an empty one with
// the given number of parts.
func newTables(parts int, owner, parameters string) []string {
	create := `CREATE TABLE inventory (LIKE inventory_before INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY)`
	with := ""
	if parameters != "" {
		with = " WITH (" + parameters + ")"
	}
	rename := `ALTER TABLE inventory RENAME TO inventory_before`
	if parts == 1 {
		return []string{rename, create + with, "ALTER TABLE inventory OWNER TO " + owner}
	}
	out := []string{rename, create + ` PARTITION BY HASH (user_key)`, "ALTER TABLE inventory OWNER TO " + owner}
	for part := range parts {
		name := partitionName(parts, part)
		out = append(out,
			fmt.Sprintf(`CREATE TABLE %s PARTITION OF inventory FOR VALUES WITH (MODULUS %d, REMAINDER %d)%s`, name, parts, part, with),
			"ALTER TABLE "+name+" OWNER TO "+owner)
	}
	return out
}

// inventoryKey returns the columns of the primary key.
func inventoryKey(parts int) string {
	if parts == 1 {
		return "(id)"
	}
	return "(id, user_key)"
}

const (
	// selectExtendedPostgres reports whether the table has objects that the conversion would drop.
	selectExtendedPostgres = `
SELECT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = t.oid AND NOT tgisinternal) OR EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = t.oid)
	OR EXISTS (SELECT 1 FROM pg_policy WHERE polrelid = t.oid) OR EXISTS (SELECT 1 FROM pg_publication_rel WHERE prrelid = t.oid)
	OR EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = t.oid AND attacl IS NOT NULL)
FROM pg_class t WHERE t.oid = CAST('inventory' AS regclass)`

	// selectStoragePostgres selects the owner and the storage parameters. All partitions have the
	// parameters of the first one, because a partitioned table has none.
	selectStoragePostgres = `
SELECT quote_ident(pg_get_userbyid(t.relowner)), coalesce(array_to_string(s.reloptions, ', '), '')
FROM pg_class t JOIN pg_class s ON s.oid = coalesce((SELECT min(inhrelid) FROM pg_inherits WHERE inhparent = t.oid), t.oid)
WHERE t.oid = CAST('inventory' AS regclass)`

	// selectDependentsPostgres selects the statements that create the indexes, including
	// indexes that an operator added, and the statements that grant the privileges of the table
	// and its sequence.
	selectDependentsPostgres = `
SELECT regexp_replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ')
FROM pg_index WHERE indrelid = CAST('inventory' AS regclass) AND NOT indisprimary
UNION ALL
SELECT format('GRANT %s ON %s TO %s%s', privilege_type, oid::regclass, CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
	CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
FROM pg_class, aclexplode(relacl) WHERE oid IN (CAST('inventory' AS regclass), CAST(pg_get_serial_sequence('inventory', 'id') AS regclass))`
)

// withPartitions returns the expected schema for the number of partitions in have. Each
// partition has the columns and unique indexes of the table. If have shows no partitions,
// it returns want.
func (want Objects) withPartitions(have Objects) Objects {
	var parts, part int
	for name, bound := range have {
		if strings.HasPrefix(name, "partition inventory.") {
			_, err := fmt.Sscanf(strings.ToLower(bound), "for values with (modulus %d, remainder %d)", &parts, &part)
			if err == nil {
				break
			}
		}
	}
	if parts < 2 || parts > MaxPartitions {
		return want
	}
	out := Objects{"partition key inventory": "HASH (user_key)"}
	for name, text := range want {
		if name == "unique index inventory.inventory_pkey" {
			text = "btree " + inventoryKey(parts)
		}
		out[name] = text
		kind, object, ok := strings.Cut(name, " inventory.")
		if !ok {
			continue
		}
		for part := range parts {
			out[kind+" "+partitionName(parts, part)+"."+object] = strings.Replace(text, " IDENTITY d", "", 1)
		}
	}
	for part := range parts {
		out["partition inventory."+partitionName(parts, part)] = fmt.Sprintf("FOR VALUES WITH (modulus %d, remainder %d)", parts, part)
	}
	return out
}
