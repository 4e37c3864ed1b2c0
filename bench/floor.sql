-- The tables of the PostgreSQL floor, in a schema of Assay's database. They have
-- the same columns and contents, with the best known layout. Each page has room
-- for a second version of every row, so an update does not move rows or change an
-- index. No index contains a price or a time.
CREATE SCHEMA floor;

CREATE TABLE floor.item (LIKE public.item) WITH (fillfactor = 45);
INSERT INTO floor.item SELECT * FROM public.item ORDER BY id;
ALTER TABLE floor.item ADD PRIMARY KEY (id), ADD UNIQUE (app_id, name, phase);

-- One row per quote, the common layout.
CREATE TABLE floor.snapshot (LIKE public.market_snapshot) WITH (fillfactor = 45);
INSERT INTO floor.snapshot SELECT * FROM public.market_snapshot ORDER BY item_id, market_id;
ALTER TABLE floor.snapshot ADD PRIMARY KEY (item_id, market_id);

CREATE TABLE floor.inventory (LIKE public.inventory) WITH (fillfactor = 45);
INSERT INTO floor.inventory SELECT * FROM public.inventory ORDER BY id;
ALTER TABLE floor.inventory ADD PRIMARY KEY (id), ADD UNIQUE (user_key, app_id, context_id, asset_id);
CREATE INDEX ON floor.inventory (item_id);
