package inventory

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"assay/internal/db"
)

const givenColumns = "n.given_seed, n.given_wear, n.given_charm, n.given_name_tag, n.given_certificate, n.link_of_steam"

// givenFields returns the destinations of givenColumns for Scan.
func givenFields(g *Given) []any {
	p := &g.Properties
	return []any{&p.Seed, &p.Wear, &p.Charm, &p.NameTag, &p.Certificate, &g.LinkOfSteam}
}

// inspections returns the inspections of a user's rows of a game and context, by row id.
func inspections(t *db.Tx, user int64, app int32, contextID string) (map[int64]Inspected, error) {
	out := map[int64]Inspected{}
	err := db.Each(t.Context(), t, func(r *sql.Rows) error {
		var id int64
		var v Inspected
		err := r.Scan(append([]any{&id, &v.State, &v.Phase, &v.Finish}, givenFields(&v.Given)...)...)
		out[id] = v
		return err
	}, `SELECT v.id, n.state, n.phase, n.finish, `+givenColumns+` FROM inventory v`+t.Dialect.Lookup(`inspection n ON n.inventory_id = v.id`)+`
		WHERE v.user_key = $1 AND v.app_id = $2 AND v.context_id = $3`, user, app, contextID)
	return out, err
}

// dueColumns are the columns of rows to inspect. Each row has the whole key of its asset.
const dueColumns = "user_key bigint, app_id bigint, context_id text, asset_id text, state text, given_seed text, given_wear text, given_charm text, given_name_tag text, " +
	"given_certificate text, link_of_steam boolean"

// putUninspected stores the input of inspections for assets of a user, game and context. It
// deletes the results of their earlier inspections.
func putUninspected(t *db.Tx, user int64, app int32, contextID string, rows []UninspectedAsset) error {
	for part := range slices.Chunk(rows, db.RowsAtOnce) {
		if err := putUninspectedPart(t, user, app, contextID, part); err != nil {
			return err
		}
	}
	return nil
}

func putUninspectedPart(t *db.Tx, user int64, app int32, contextID string, assets []UninspectedAsset) error {
	if err := t.ByIndex(); err != nil {
		return err
	}
	rows := db.NewTable(dueColumns, len(assets))
	for i := range assets {
		p := &assets[i].Given.Properties
		rows.Int(user, int64(app))
		rows.Text(contextID, assets[i].AssetID, string(assets[i].State), p.Seed, p.Wear, p.Charm, p.NameTag, p.Certificate)
		rows.Bool(assets[i].Given.LinkOfSteam)
	}
	found := ` FROM ` + t.Dialect.Rows(1, dueColumns) + ` d` +
		t.Dialect.Lookup(`inventory v ON v.user_key = d.user_key AND v.app_id = d.app_id AND v.context_id = d.context_id AND v.asset_id = d.asset_id`)
	ids, err := db.Collect(t.Context(), t, func(r *sql.Rows, id *int64) error { return r.Scan(id) }, `SELECT v.id`+found, rows.Params(t.Dialect)...)
	if err != nil {
		return err
	}
	if err := removeInspections(t, ids); err != nil {
		return err
	}
	_, err = t.Exec(`
		INSERT INTO inspection (inventory_id, user_key, state, given_seed, given_wear, given_charm, given_name_tag, given_certificate, link_of_steam)
		SELECT v.id, v.user_key, d.state, d.given_seed, d.given_wear, d.given_charm, d.given_name_tag, d.given_certificate, d.link_of_steam`+found,
		rows.Params(t.Dialect)...)
	return err
}

// removeInspections deletes the inspections of rows by their ids.
func removeInspections(t *db.Tx, rows []int64) error {
	_, err := t.Exec(`DELETE FROM inspection WHERE inventory_id `+t.Dialect.OneOf(1), t.Dialect.EncodeIDs(rows))
	return err
}

// queueInspections changes the state of inspections from none to pending.
func queueInspections(t *db.Tx, rows []int64) error {
	_, err := t.Exec(`UPDATE inspection SET state = 'pending' WHERE state = 'none' AND inventory_id `+t.Dialect.OneOf(1), t.Dialect.EncodeIDs(rows))
	return err
}

// claimUninspected returns up to limit pending rows of one user. It locks the user. A sync
// takes the same lock first, so no other transaction writes the user's inventories before
// this one ends.
func claimUninspected(t *db.Tx, limit int) ([]Uninspected, error) {
	if err := t.ByIndex(); err != nil {
		return nil, err
	}
	var user int64
	err := t.QueryRow(`SELECT user_key FROM inspection WHERE state = 'pending' ORDER BY user_key LIMIT 1`).Scan(&user)
	if found, err := db.Found(err); !found {
		return nil, err
	}
	if err := t.ExecPostgres(`SELECT id FROM platform_user WHERE id = $1 FOR NO KEY UPDATE`, user); err != nil {
		return nil, err
	}
	return db.Collect(t.Context(), t, func(r *sql.Rows, v *Uninspected) error {
		return r.Scan(append([]any{&v.ID, &v.AssetID, &v.Link, &v.Name, &v.Phase}, givenFields(&v.Given)...)...)
	}, `SELECT v.id, v.asset_id, v.inspect, coalesce(i.name, ''), coalesce(i.phase, ''), `+givenColumns+`
		FROM inspection n JOIN inventory v ON v.id = n.inventory_id LEFT JOIN item i ON i.id = v.item_id
		WHERE n.user_key = $1 AND n.state = 'pending' LIMIT $2`, user, limit)
}

// foundColumns are the columns of the results of inspections.
const foundColumns = "id bigint, seed bigint, finish bigint, def_index bigint, quality bigint, rarity bigint, kills bigint, charm bigint, " +
	"state text, code text, source text, phase text, wear text, name_tag text, stickers text, charms text"

// setInspections stores the results of inspections by row id.
func setInspections(t *db.Tx, found []Inspection) error {
	rows := db.NewTable(foundColumns, len(found))
	for i := range found {
		f := &found[i]
		stickers, err := json.Marshal(f.Stickers)
		if err != nil {
			return fmt.Errorf("stickers: %w", err)
		}
		charms, err := json.Marshal(f.Charms)
		if err != nil {
			return fmt.Errorf("charms: %w", err)
		}
		rows.Int(f.ID, f.Seed, f.Finish, f.DefIndex, f.Quality, f.Rarity, f.Kills, f.Charm)
		rows.Text(string(f.State), f.Code, string(f.Source), f.Phase, f.Wear, f.NameTag, string(stickers), string(charms))
	}
	_, err := t.Exec(`
		UPDATE inspection SET seed = f.seed, finish = f.finish, def_index = f.def_index, quality = f.quality, rarity = f.rarity,
			kills = f.kills, charm = f.charm, state = f.state, code = f.code, source = f.source, phase = f.phase, wear = f.wear,
			name_tag = f.name_tag, stickers = f.stickers, charms = f.charms
		FROM `+t.Dialect.Rows(1, foundColumns)+` f WHERE inspection.inventory_id = f.id`, rows.Params(t.Dialect)...)
	return err
}

// moveColumns are the columns of rows that change their item.
const moveColumns = "id bigint, item_id bigint"

// moveInventory assigns rows to other items. The map items has the new item id of each row
// id. Each row gets the price of its new item. Active listings of the rows change their
// item too.
func moveInventory(t *db.Tx, items map[int64]int64) error {
	rows := db.NewTable(moveColumns, len(items))
	for id, item := range items {
		rows.Int(id, item)
	}
	if err := t.ExecPostgres(lockRowsSQL+`SELECT unnest(CAST($1 AS bigint[]))`+inOrderOfID, slices.Collect(maps.Keys(items))); err != nil {
		return err
	}
	_, err := t.Exec(`
		UPDATE inventory SET item_id = i.id, value = nullif(i.price, 0)
		FROM `+t.Dialect.Rows(1, moveColumns)+` m JOIN item i ON i.id = m.item_id
		WHERE inventory.id = m.id`, rows.Params(t.Dialect)...)
	if err != nil {
		return err
	}
	_, err = t.Exec(`
		UPDATE listing SET item_id = v.item_id
		FROM `+t.Dialect.Rows(1, moveColumns)+` m JOIN inventory v ON v.id = m.id
		WHERE listing.seller_key = v.user_key AND listing.app_id = v.app_id AND listing.context_id = v.context_id
			AND listing.asset_id = v.asset_id AND listing.state = 'active'`, rows.Params(t.Dialect)...)
	return err
}
