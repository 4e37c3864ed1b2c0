-- The tables of the peer, with only the columns that a refresh needs. Pages of
-- tables with updates have free room. No index contains a price or a time.
CREATE TABLE item (
    id         bigint PRIMARY KEY,
    name       text   NOT NULL UNIQUE,
    price      bigint NOT NULL, -- micro-units
    average    bigint NOT NULL,
    markets    int    NOT NULL,
    checked_at bigint NOT NULL  -- microseconds
) WITH (fillfactor = 45);

CREATE TABLE snapshot (
    item_id    bigint NOT NULL,
    market     text   NOT NULL,
    ask        bigint NOT NULL,
    bid        bigint NOT NULL,
    sale       bigint NOT NULL,
    listings   bigint NOT NULL,
    sales      bigint NOT NULL,
    fetched_at bigint NOT NULL,
    PRIMARY KEY (item_id, market)
) WITH (fillfactor = 45);

CREATE TABLE inventory (
    id          bigint PRIMARY KEY,
    user_key    bigint NOT NULL,
    app_id      int    NOT NULL,
    context_id  text   NOT NULL,
    asset_id    text   NOT NULL,
    item_id     bigint NOT NULL,
    class_id    text   NOT NULL,
    instance_id text   NOT NULL,
    amount      bigint NOT NULL,
    value       bigint,
    UNIQUE (user_key, app_id, context_id, asset_id)
) WITH (fillfactor = 45);
CREATE INDEX inventory_item ON inventory (item_id);
