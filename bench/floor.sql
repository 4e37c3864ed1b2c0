-- The tables of the PostgreSQL floor, in a schema beside Assay's: the same
-- columns with the same contents, laid out as well as we know by hand. There is
-- room in each page for a second version of every row, so that an update moves
-- nothing and touches no index, and no index holds a value or a time.
CREATE SCHEMA floor;

CREATE TABLE floor.item (LIKE public.item) WITH (fillfactor = 45);
INSERT INTO floor.item SELECT * FROM public.item ORDER BY id;
ALTER TABLE floor.item ADD PRIMARY KEY (id), ADD UNIQUE (app_id, name, phase);

-- A row per quote, as a table of quotes is usually laid out.
CREATE TABLE floor.snapshot (LIKE public.market_snapshot) WITH (fillfactor = 45);
INSERT INTO floor.snapshot SELECT * FROM public.market_snapshot ORDER BY item_id, market_id;
ALTER TABLE floor.snapshot ADD PRIMARY KEY (item_id, market_id);

CREATE TABLE floor.inventory (LIKE public.inventory) WITH (fillfactor = 45);
INSERT INTO floor.inventory SELECT * FROM public.inventory ORDER BY id;
ALTER TABLE floor.inventory ADD PRIMARY KEY (id), ADD UNIQUE (user_key, app_id, context_id, asset_id);
CREATE INDEX ON floor.inventory (item_id);
