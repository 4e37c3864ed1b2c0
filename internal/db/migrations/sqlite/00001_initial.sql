-- +goose Up
-- Times are microseconds since 1970 in UTC, 0 where there is none; amounts are
-- micro-units (10^-6) of a currency; names compare byte for byte.

CREATE TABLE setting (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Contract: SkinItem. All figures are of the base currency.
CREATE TABLE item (
    id               INTEGER PRIMARY KEY,        -- its bucket << 32, plus a number
    app_id           INTEGER NOT NULL,
    name             TEXT    NOT NULL,
    phase            TEXT    NOT NULL,
    bucket           INTEGER NOT NULL,           -- catalog.Bucket(name)
    price            INTEGER NOT NULL DEFAULT 0, -- currentPrice; 0: unknown
    status           INTEGER NOT NULL DEFAULT 5, -- pricing.Status
    method           TEXT    NOT NULL DEFAULT '',
    method_version   INTEGER NOT NULL DEFAULT 0,
    average          INTEGER NOT NULL DEFAULT 0,
    median           INTEGER NOT NULL DEFAULT 0,
    consensus        INTEGER NOT NULL DEFAULT 0,
    low              INTEGER NOT NULL DEFAULT 0,
    high             INTEGER NOT NULL DEFAULT 0,
    interval_low     INTEGER NOT NULL DEFAULT 0, -- around consensus
    interval_high    INTEGER NOT NULL DEFAULT 0,
    markets          INTEGER NOT NULL DEFAULT 0,
    used_markets     INTEGER NOT NULL DEFAULT 0,
    candidate        INTEGER NOT NULL DEFAULT 0,
    candidate_at     INTEGER NOT NULL DEFAULT 0,
    guard            TEXT    NOT NULL DEFAULT '', -- JSON: what else the guard remembers (pricing.EncodeGuard)
    range_low        INTEGER NOT NULL DEFAULT 0, -- of all accepted prices of a week or more
    range_high       INTEGER NOT NULL DEFAULT 0,
    price_updated_at INTEGER NOT NULL DEFAULT 0, -- the value changed
    price_checked_at INTEGER NOT NULL DEFAULT 0, -- as of when the newest quote behind the price is
    estimated_at     INTEGER NOT NULL DEFAULT 0, -- last run that estimated it
    quotes_at        INTEGER NOT NULL DEFAULT 0, -- fetch of the quotes behind it; the TTL counts from here
    rate_set         INTEGER NOT NULL DEFAULT 0, -- rates of that run; 0: none were configured
    level_set        INTEGER NOT NULL DEFAULT 0, -- level set of that run; 0: nothing was learned yet
    no_sales_since   INTEGER NOT NULL DEFAULT 0,
    retry_at         INTEGER NOT NULL DEFAULT 0, -- end of the no-sales pause
    failures         INTEGER NOT NULL DEFAULT 0, -- runs in a row without any answer
    rev              INTEGER NOT NULL DEFAULT 0, -- counts estimates; guards against a lost update
    CHECK (price >= 0)
);
CREATE UNIQUE INDEX item_key ON item (app_id, name, phase);
-- Items without a price. A statement that is to use it repeats its condition word for
-- word; the price itself would make PostgreSQL write all indexes whenever it changes.
CREATE INDEX item_unpriced ON item (app_id, name, phase) WHERE status = 5;

-- Counts the commits that changed prices of a name bucket; no row: none.
CREATE TABLE price_version (
    bucket  INTEGER NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL
);

-- Exchange rates that runs were made with; what was estimated with them is
-- explained with them.
CREATE TABLE rate_set (
    id     INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE, -- SHA-256 of rates, which may be too long for an index
    rates  TEXT NOT NULL         -- JSON: [{"currency","rate","date"}], by currency
);

-- What a place that exchange rates come from told last.
CREATE TABLE rate_place (
    place         TEXT    NOT NULL PRIMARY KEY, -- ecb, file
    rate_set      INTEGER NOT NULL,             -- the last good ones; 0: none yet
    read_at       INTEGER NOT NULL,             -- when it told them
    due_at        INTEGER NOT NULL,             -- not asked again before
    last_error    TEXT    NOT NULL,             -- why what it told since does not count; '': it does
    last_error_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE market (
    id       INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    key      TEXT NOT NULL,
    title    TEXT NOT NULL,
    UNIQUE (provider, key)
);

-- All quotes of an item, a JSON array with an array per market: see market_snapshot.
-- The row is rewritten when what was quoted changes, not when it is confirmed.
CREATE TABLE item_quotes (
    item_id INTEGER PRIMARY KEY,
    quotes  TEXT NOT NULL
);

-- Contract: MarketSnapshot, a row per item and market. fetched_at 0 means "as of
-- item.quotes_at".
CREATE VIEW market_snapshot AS
SELECT q.item_id,
    json_extract(m.value, '$[0]') AS market_id,
    json_extract(m.value, '$[1]') AS currency,
    json_extract(m.value, '$[2]') AS ask, -- 0: none
    json_extract(m.value, '$[3]') AS bid,
    json_extract(m.value, '$[4]') AS sale,
    json_extract(m.value, '$[5]') AS listings, -- -1: not stated
    json_extract(m.value, '$[6]') AS sales, -- -1: not stated
    json_extract(m.value, '$[7]') AS sales_window, -- seconds
    json_extract(m.value, '$[8]') * 3600000000 AS market_time, -- the market's own, to the hour
    json_extract(m.value, '$[9]') AS fetched_at,
    json_extract(m.value, '$[10]') AS reason -- pricing.Reason; '': used
FROM item_quotes q, json_each(q.quotes) m;

-- Contract: PriceHistory. A row where the price or its status changed, and none
-- elsewhere.
CREATE TABLE price_point (
    item_id        INTEGER NOT NULL,
    at             INTEGER NOT NULL,
    price          INTEGER NOT NULL,
    status         INTEGER NOT NULL, -- pricing.Status
    interval_low   INTEGER NOT NULL,
    interval_high  INTEGER NOT NULL,
    rate_set       INTEGER NOT NULL,
    level_set      INTEGER NOT NULL,
    method_version INTEGER NOT NULL, -- pricing.MethodVersion
    used           TEXT    NOT NULL, -- ids of the markets behind the price, with commas; '': an operator accepted it
    method         TEXT    NOT NULL, -- pricing.Policy.Label
    PRIMARY KEY (item_id, at)
) WITHOUT ROWID;

-- A process that works on this database. Where there can be several, each moves
-- its counter on twice a second; whoever sees one stand still for some seconds of
-- its own clock takes over what is claimed in that one's name.
CREATE TABLE instance (
    owner        TEXT    NOT NULL PRIMARY KEY, -- as in claims; unique for each process
    version      TEXT    NOT NULL,
    endpoints    TEXT    NOT NULL,             -- a JSON list: what it can ask for, "provider/file"
    started_at   INTEGER NOT NULL,
    heartbeat    INTEGER NOT NULL,             -- the counter
    heartbeat_at INTEGER NOT NULL,             -- by its own clock, for people to see
    report       TEXT    NOT NULL,             -- what it tells of the providers that it asks; JSON, empty before the first heartbeat
    syncs        INTEGER NOT NULL DEFAULT 0 -- of inventories that have begun there
) WITHOUT ROWID;

-- Contract: MarketPriceRefreshJob.
CREATE TABLE refresh_job (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    kind             TEXT    NOT NULL, -- bulk, missing
    forced           INTEGER NOT NULL,
    state            TEXT    NOT NULL, -- queued, running, finished, failed, cancelled
    stage            TEXT    NOT NULL, -- plan, fetch, estimate, apply, done
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    requested_by     TEXT    NOT NULL,
    retry_of         INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    started_at       INTEGER NOT NULL DEFAULT 0,
    finished_at      INTEGER NOT NULL DEFAULT 0,
    total            INTEGER NOT NULL DEFAULT 0,
    skipped_ttl      INTEGER NOT NULL DEFAULT 0,
    skipped_no_sales INTEGER NOT NULL DEFAULT 0,
    batches          INTEGER NOT NULL DEFAULT 0,
    apply_cursor     INTEGER NOT NULL DEFAULT 0, -- batch that is next, where prices are applied by batch
    rate_set         INTEGER NOT NULL DEFAULT 0, -- exchange rates that it is estimated with
    last_error       TEXT    NOT NULL DEFAULT '',
    outcome          TEXT    NOT NULL DEFAULT '', -- complete, partial, failed; '' while it lives
    market_gaps      TEXT    NOT NULL DEFAULT ''  -- JSON: the markets that it lacks, and why; '': none
);
-- A statement that is to use one of the partial indexes below repeats its
-- condition word for word: state IN ('queued', 'running') AND state = 'queued'.
CREATE UNIQUE INDEX refresh_job_live ON refresh_job (kind) WHERE state IN ('queued', 'running');

-- A range of name buckets of a job; estimated in one transaction.
CREATE TABLE refresh_batch (
    job_id          INTEGER NOT NULL,
    batch           INTEGER NOT NULL,
    state           TEXT    NOT NULL, -- pending, running, estimated, cancelled
    owner           TEXT    NOT NULL DEFAULT '',
    token           INTEGER NOT NULL DEFAULT 0,
    started_at      INTEGER NOT NULL DEFAULT 0,
    pending         INTEGER NOT NULL,
    updated         INTEGER NOT NULL DEFAULT 0,
    no_quote        INTEGER NOT NULL DEFAULT 0,
    failed          INTEGER NOT NULL DEFAULT 0,
    skipped_budget  INTEGER NOT NULL DEFAULT 0,
    skipped_paused  INTEGER NOT NULL DEFAULT 0,
    skipped_backoff INTEGER NOT NULL DEFAULT 0, -- of a circuit breaker, or a wait that the provider demands
    cancelled       INTEGER NOT NULL DEFAULT 0,
    changed         INTEGER NOT NULL DEFAULT 0, -- of the updated ones
    PRIMARY KEY (job_id, batch)
) WITHOUT ROWID;
CREATE INDEX refresh_batch_open ON refresh_batch (job_id) WHERE state IN ('pending', 'running');

-- Contract: MarketPriceRefreshItem.
CREATE TABLE refresh_item (
    job_id       INTEGER NOT NULL,
    batch        INTEGER NOT NULL,
    item_id      INTEGER NOT NULL,
    state        TEXT    NOT NULL, -- pending, updated, skipped, noQuote, failed, cancelled
    reason       TEXT    NOT NULL, -- of a skip: ttl, noSales, budget, paused, backoff
    attempts     INTEGER NOT NULL,
    price_before INTEGER NOT NULL,
    price_after  INTEGER NOT NULL, -- -1 until estimated
    error        TEXT    NOT NULL,
    PRIMARY KEY (job_id, batch, item_id)
) WITHOUT ROWID;

-- A part of the inventory rows that a job copies its prices onto. Whoever does the
-- next of its rows holds the shard's row meanwhile.
CREATE TABLE apply_shard (
    job_id  INTEGER NOT NULL,
    shard   INTEGER NOT NULL,
    next_id INTEGER NOT NULL, -- of inventory
    end_id  INTEGER NOT NULL, -- excluded
    PRIMARY KEY (job_id, shard)
) WITHOUT ROWID;

-- One thing to ask a provider for: a file, or some names of a game.
CREATE TABLE fetch_unit (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id     INTEGER NOT NULL,
    provider   TEXT    NOT NULL,
    app_id     INTEGER NOT NULL,
    file       TEXT    NOT NULL, -- '' for names
    names      BLOB,             -- packed; NULL for a file
    size       INTEGER NOT NULL DEFAULT 0, -- names that it is about; of what is left for later, those that still are
    batch_from INTEGER NOT NULL, -- batches that wait for it
    batch_to   INTEGER NOT NULL,
    state      TEXT    NOT NULL, -- pending, running, done, failed, deferred, cancelled
    owner      TEXT    NOT NULL DEFAULT '',
    token      INTEGER NOT NULL DEFAULT 0,
    attempts   INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL DEFAULT 0,
    fetched_at INTEGER NOT NULL DEFAULT 0,
    stated_at  INTEGER NOT NULL DEFAULT 0, -- the provider's own time of the answer
    blob_unit  INTEGER NOT NULL DEFAULT 0, -- whose blobs hold the answer: its own, or an earlier one's
    requests   INTEGER NOT NULL DEFAULT 0, -- that were sent, but for the last of an attempt under way
    reserved   INTEGER NOT NULL DEFAULT 0, -- of the claim: those that may have been sent beside
    detached   INTEGER NOT NULL DEFAULT 0, -- 1: its job went on without it, and does not use its response; error says why. 2: likewise, and it was requested then: its failure is noted. 3: a name of the background fetch
    bytes      INTEGER NOT NULL DEFAULT 0,
    error_kind TEXT    NOT NULL DEFAULT '',
    error      TEXT    NOT NULL DEFAULT ''
);
CREATE INDEX fetch_unit_job ON fetch_unit (job_id, provider);
CREATE INDEX fetch_unit_open ON fetch_unit (provider, id) WHERE state IN ('pending', 'running');
CREATE INDEX fetch_unit_claimed ON fetch_unit (owner) WHERE state = 'running';
CREATE INDEX fetch_unit_file ON fetch_unit (provider, app_id, file, id) WHERE file <> '';

-- A name of a provider that has a budget for what it is asked by name.
CREATE TABLE background_name (
    provider     TEXT    NOT NULL,
    app_id       INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    requested_at INTEGER NOT NULL DEFAULT 0, -- whatever came of it
    place        INTEGER NOT NULL DEFAULT 0, -- in the order in which it is asked in the background; 0: it has none
    urgent       INTEGER NOT NULL DEFAULT 0, -- since when its price is missing: it is asked before all others; 0: it is not
    job_id       INTEGER NOT NULL DEFAULT 0, -- that planned this; by which it is counted
    unit_id      INTEGER NOT NULL DEFAULT 0, -- fetch_unit that requests it, while that is open
    PRIMARY KEY (provider, app_id, name)
) WITHOUT ROWID;
CREATE INDEX background_name_open ON background_name (provider, place) WHERE place <> 0;
CREATE INDEX background_name_urgent ON background_name (provider, urgent) WHERE urgent <> 0;
CREATE INDEX background_name_unit ON background_name (unit_id) WHERE unit_id <> 0;

-- An answer, packed, by name bucket.
CREATE TABLE fetch_blob (
    unit_id INTEGER NOT NULL,
    bucket  INTEGER NOT NULL,
    data    BLOB    NOT NULL
);
CREATE UNIQUE INDEX fetch_blob_key ON fetch_blob (unit_id, bucket);

-- Contract: Market fetch. Bytes and requests are of the units that carried the
-- market, which may carry others too.
CREATE TABLE market_fetch (
    job_id     INTEGER NOT NULL,
    unit_id    INTEGER NOT NULL, -- 0: all units of a provider that is asked by name
    market_id  INTEGER NOT NULL,
    fetched_at INTEGER NOT NULL,
    quotes     INTEGER NOT NULL,
    rejected   INTEGER NOT NULL,
    requests   INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    outcome    TEXT    NOT NULL, -- ok, silent, quarantined
    PRIMARY KEY (job_id, unit_id, market_id)
) WITHOUT ROWID;

-- The newest good answer of each market of a file, and its quarantine.
CREATE TABLE market_file (
    market_id         INTEGER NOT NULL,
    app_id            INTEGER NOT NULL,
    file              TEXT    NOT NULL,
    unit_id           INTEGER NOT NULL DEFAULT 0, -- whose blobs hold it
    fetched_at        INTEGER NOT NULL DEFAULT 0,
    quotes            INTEGER NOT NULL DEFAULT 0,
    quarantine        TEXT    NOT NULL DEFAULT '', -- why the last answer was refused
    quarantined_since INTEGER NOT NULL DEFAULT 0,
    accepted_at       INTEGER NOT NULL DEFAULT 0,  -- when an operator vouched for answers like it
    PRIMARY KEY (market_id, app_id, file)
) WITHOUT ROWID;

-- What a run learned of a game's markets: levels, noise, moves (pricing.Set).
CREATE TABLE level_set (
    id         INTEGER PRIMARY KEY,
    app_id     INTEGER NOT NULL,
    learned_at INTEGER NOT NULL,
    data       BLOB NOT NULL
);
CREATE INDEX level_set_app ON level_set (app_id, id);

-- What the prices of a game are computed with in a job.
CREATE TABLE refresh_level (
    job_id    INTEGER NOT NULL,
    app_id    INTEGER NOT NULL,
    level_set INTEGER NOT NULL,
    movers    BLOB NOT NULL, -- quotes that moved by themselves (pricing.Movers)
    PRIMARY KEY (job_id, app_id)
) WITHOUT ROWID;

-- What validation remembers of a market between runs.
CREATE TABLE market_memory (
    market_id INTEGER NOT NULL,
    app_id    INTEGER NOT NULL,
    state     BLOB NOT NULL, -- pricing.MarketState, at most 160 bytes
    history   BLOB NOT NULL, -- good responses of eight days (pricing.History): 15 to 21 bytes per name
    PRIMARY KEY (market_id, app_id)
);

-- What became of the last answers of a market; it outlives their jobs.
CREATE TABLE market_state (
    market_id     INTEGER NOT NULL PRIMARY KEY,
    job_id        INTEGER NOT NULL DEFAULT 0,  -- the last that asked
    fetched_at    INTEGER NOT NULL DEFAULT 0,
    quotes        INTEGER NOT NULL DEFAULT 0,  -- in all answers to that job
    rejected      INTEGER NOT NULL DEFAULT 0,
    outcome       TEXT    NOT NULL DEFAULT '', -- of the last answer
    last_success  INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT    NOT NULL DEFAULT '',
    last_error_at INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE provider_state (
    provider      TEXT NOT NULL PRIMARY KEY,
    paused        INTEGER NOT NULL DEFAULT 0,
    last_success  INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT    NOT NULL DEFAULT '',
    last_error_at INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- How the last fetches of a provider's files ended; file '' is requests for names.
CREATE TABLE provider_file (
    provider      TEXT    NOT NULL,
    file          TEXT    NOT NULL,
    last_success  INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT    NOT NULL DEFAULT '',
    last_error_at INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0, -- in a row
    PRIMARY KEY (provider, file)
) WITHOUT ROWID;

-- A host of a provider that has asked to be left alone.
CREATE TABLE provider_host (
    provider      TEXT    NOT NULL,
    host          TEXT    NOT NULL, -- '' where the provider has one
    blocked_at    INTEGER NOT NULL, -- when it asked
    blocked_until INTEGER NOT NULL,
    PRIMARY KEY (provider, host)
) WITHOUT ROWID;

-- What the limit of a host allows, a slot for each request, or for several where
-- it allows many: a slot that is full is free again a period after its last one.
CREATE TABLE budget_slot (
    provider TEXT    NOT NULL,
    host     TEXT    NOT NULL,
    slot     INTEGER NOT NULL, -- from 0
    used     INTEGER NOT NULL, -- requests
    at       INTEGER NOT NULL, -- of the last of them
    PRIMARY KEY (provider, host, slot)
) WITHOUT ROWID;

-- What is used of a host's quotas.
CREATE TABLE budget_quota (
    provider  TEXT    NOT NULL,
    host      TEXT    NOT NULL,
    period    TEXT    NOT NULL, -- day, month
    starts_at INTEGER NOT NULL, -- of the day or month, UTC
    used      INTEGER NOT NULL, -- requests since
    PRIMARY KEY (provider, host, period)
) WITHOUT ROWID;

-- What a host itself says it leaves until it begins to count anew.
CREATE TABLE reported_quota (
    provider       TEXT    NOT NULL,
    host           TEXT    NOT NULL,
    reported_limit INTEGER NOT NULL, -- 0: it does not say
    reported_left  INTEGER NOT NULL, -- less what was sent since
    reported_at    INTEGER NOT NULL, -- when the last answer said so
    resets_at      INTEGER NOT NULL,
    PRIMARY KEY (provider, host)
) WITHOUT ROWID;

-- Requests to a host in each of the last hours, where some budget of it lasts long:
-- by them it is told when that runs out.
CREATE TABLE budget_hour (
    provider  TEXT    NOT NULL,
    host      TEXT    NOT NULL,
    hour      INTEGER NOT NULL, -- of the epoch, modulo 26
    starts_at INTEGER NOT NULL,
    used      INTEGER NOT NULL,
    PRIMARY KEY (provider, host, hour)
) WITHOUT ROWID;

-- Budgets that were told to be low, until they are renewed.
CREATE TABLE budget_low (
    provider TEXT    NOT NULL,
    host     TEXT    NOT NULL,
    budget   TEXT    NOT NULL, -- limit, day, month, told
    until    INTEGER NOT NULL,
    PRIMARY KEY (provider, host, budget)
) WITHOUT ROWID;

-- What happened, for operators and platforms; written with what made it so.
CREATE TABLE event (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT    NOT NULL, -- price.changed, job.finished, ...
    at   INTEGER NOT NULL,
    data TEXT    NOT NULL  -- JSON
);

-- Hosts of providers that keep failing and are not asked for a while.
CREATE TABLE provider_down (
    provider TEXT    NOT NULL,
    host     TEXT    NOT NULL, -- '' where the provider has one
    since    INTEGER NOT NULL,
    PRIMARY KEY (provider, host)
) WITHOUT ROWID;

-- Items that a sync found without a price; an item is queued once.
CREATE TABLE missing_price (
    item_id    INTEGER NOT NULL PRIMARY KEY,
    queued_at  INTEGER NOT NULL,
    due_at     INTEGER NOT NULL, -- 0: at once
    soonest_at INTEGER NOT NULL DEFAULT 0, -- when it is due if it is named again: a first pause after the last attempt
    attempts   INTEGER NOT NULL DEFAULT 0,
    job_id     INTEGER NOT NULL DEFAULT 0 -- the job that works on it
);
CREATE INDEX missing_price_due ON missing_price (due_at);

CREATE TABLE platform_user (
    id           INTEGER PRIMARY KEY,
    user_id      TEXT    NOT NULL UNIQUE, -- the platform's own
    steam_id     TEXT    NOT NULL DEFAULT '',
    display_name TEXT    NOT NULL DEFAULT '',
    leaderboard  INTEGER NOT NULL DEFAULT 1,
    created_at   INTEGER NOT NULL,
    deleted_at   INTEGER NOT NULL DEFAULT 0 -- 0: not deleted; the row of a deleted user keeps the id that trades name
);
CREATE UNIQUE INDEX platform_user_steam ON platform_user (steam_id) WHERE steam_id <> '';
CREATE INDEX platform_user_deleted ON platform_user (id) WHERE deleted_at <> 0;

-- The moment of the newest inventory of a user, game and context.
CREATE TABLE inventory_snapshot (
    user_key    INTEGER NOT NULL,
    app_id      INTEGER NOT NULL,
    context_id  TEXT    NOT NULL,
    snapshot_at INTEGER NOT NULL,
    PRIMARY KEY (user_key, app_id, context_id)
) WITHOUT ROWID;

-- Contract: UserInventory, a row per asset.
CREATE TABLE inventory (
    id          INTEGER PRIMARY KEY,
    user_key    INTEGER NOT NULL,
    app_id      INTEGER NOT NULL,
    context_id  TEXT    NOT NULL,
    asset_id    TEXT    NOT NULL,
    item_id     INTEGER NOT NULL, -- 0: without a name, hence without a price
    class_id    TEXT    NOT NULL,
    instance_id TEXT    NOT NULL,
    amount      INTEGER NOT NULL,
    tradable    INTEGER NOT NULL,
    marketable  INTEGER NOT NULL,
    inspect     TEXT    NOT NULL,
    in_transfer INTEGER NOT NULL DEFAULT 0, -- it was sold, and no sync has shown yet where it went
    value       INTEGER           -- estimatedValue of one; NULL: unknown
);
CREATE UNIQUE INDEX inventory_key ON inventory (user_key, app_id, context_id, asset_id);
CREATE INDEX inventory_item ON inventory (item_id);

-- What an asset's certificate and properties say; a row for each asset that has
-- a certificate, an inspect link or properties.
CREATE TABLE inspection (
    inventory_id      INTEGER PRIMARY KEY,
    user_key          INTEGER NOT NULL,
    state             TEXT    NOT NULL, -- inventory.InspectState
    code              TEXT    NOT NULL DEFAULT '', -- why it failed, or what contradicts
    source            TEXT    NOT NULL DEFAULT '', -- of what was decoded: inventory.InspectSource
    given_seed        TEXT    NOT NULL, -- Steam's properties of the asset, as it writes them
    given_wear        TEXT    NOT NULL,
    given_charm       TEXT    NOT NULL,
    given_name_tag    TEXT    NOT NULL,
    given_certificate TEXT    NOT NULL,
    link_of_steam     INTEGER NOT NULL, -- inventory.inspect is from Steam's answer
    phase             TEXT    NOT NULL DEFAULT '', -- that the asset was moved to for its finish
    wear              TEXT    NOT NULL DEFAULT '', -- decimal
    seed              INTEGER NOT NULL DEFAULT -1, -- -1 here and below: not said
    finish            INTEGER NOT NULL DEFAULT -1, -- paint index
    def_index         INTEGER NOT NULL DEFAULT -1,
    quality           INTEGER NOT NULL DEFAULT -1,
    rarity            INTEGER NOT NULL DEFAULT -1,
    kills             INTEGER NOT NULL DEFAULT -1, -- of StatTrak
    charm             INTEGER NOT NULL DEFAULT -1, -- template of a charm
    name_tag          TEXT    NOT NULL DEFAULT '',
    stickers          TEXT    NOT NULL DEFAULT '[]', -- JSON: [inventory.Sticker]
    charms            TEXT    NOT NULL DEFAULT '[]'
);
CREATE INDEX inspection_pending ON inspection (user_key) WHERE state = 'pending';

-- Contract: Listing. Prices are whole minor units of the currency.
CREATE TABLE listing (
    id         INTEGER PRIMARY KEY,
    seller_key INTEGER NOT NULL,
    app_id     INTEGER NOT NULL,
    context_id TEXT    NOT NULL,
    asset_id   TEXT    NOT NULL,
    item_id    INTEGER NOT NULL,
    amount     INTEGER NOT NULL,
    price      INTEGER NOT NULL, -- of all of it
    currency   TEXT    NOT NULL,
    state      TEXT    NOT NULL, -- active, sold, cancelled, expired
    created_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX listing_active ON listing (seller_key, app_id, context_id, asset_id) WHERE state = 'active';
CREATE INDEX listing_active_item ON listing (item_id, id) WHERE state = 'active';
CREATE INDEX listing_active_app ON listing (app_id, id) WHERE state = 'active';
CREATE INDEX listing_active_seller ON listing (seller_key, id) WHERE state = 'active';
CREATE INDEX listing_active_all ON listing (id) WHERE state = 'active';
CREATE INDEX listing_cancelled ON listing (id) WHERE state = 'cancelled';
CREATE INDEX listing_expired ON listing (id) WHERE state = 'expired';
CREATE INDEX listing_item ON listing (item_id, id);
CREATE INDEX listing_seller ON listing (seller_key, id);
CREATE INDEX listing_created ON listing (created_at, id);

-- Contract: Trade. What was sold, for how much and what became of it.
CREATE TABLE trade (
    id             INTEGER PRIMARY KEY,
    listing_id     INTEGER NOT NULL UNIQUE,
    seller_key     INTEGER NOT NULL,
    buyer_key      INTEGER NOT NULL,
    app_id         INTEGER NOT NULL,
    context_id     TEXT    NOT NULL,
    asset_id       TEXT    NOT NULL, -- as it was the seller's
    item_id        INTEGER NOT NULL,
    amount         INTEGER NOT NULL,
    price          INTEGER NOT NULL, -- minor units, as are fee and net
    currency       TEXT    NOT NULL,
    payment_method TEXT    NOT NULL DEFAULT '', -- as the purchase said, for the fee rules; '': it did not
    country        TEXT    NOT NULL DEFAULT '', -- the same
    fee            INTEGER NOT NULL DEFAULT 0,
    net            INTEGER NOT NULL DEFAULT 0,  -- what the seller gets
    fee_rule       TEXT    NOT NULL DEFAULT '',
    fee_version    INTEGER NOT NULL DEFAULT 0,
    transaction_id INTEGER NOT NULL DEFAULT 0,  -- of the wallet
    state          TEXT    NOT NULL, -- pending, completed, reversed, settled
    created_at     INTEGER NOT NULL,
    completed_at   INTEGER NOT NULL DEFAULT 0,
    settle_at      INTEGER NOT NULL DEFAULT 0,
    settled_at     INTEGER NOT NULL DEFAULT 0,
    reversed_at    INTEGER NOT NULL DEFAULT 0,
    volume         INTEGER NOT NULL DEFAULT 0, -- micro-units of the base currency, as counted for top traders
    ranked         INTEGER NOT NULL DEFAULT 0, -- of the volume, what counts for a rank
    version        INTEGER NOT NULL DEFAULT 0, -- of the bytes under the MAC
    key_id         TEXT    NOT NULL DEFAULT '',
    mac            BLOB    NOT NULL DEFAULT X'' -- over all of this row
);
CREATE INDEX trade_seller ON trade (seller_key, id);
CREATE INDEX trade_buyer ON trade (buyer_key, id);
CREATE INDEX trade_created ON trade (created_at, id);
CREATE INDEX trade_asset ON trade (seller_key, app_id, context_id, asset_id) WHERE state IN ('pending', 'completed');
CREATE INDEX trade_due ON trade (settle_at, id) WHERE state = 'completed';
CREATE INDEX trade_state ON trade (state, created_at, id);

-- Trades that were reported as overdue.
CREATE TABLE trade_overdue (
    trade_id INTEGER NOT NULL PRIMARY KEY,
    at       INTEGER NOT NULL
);

-- What a user traded with another one on a day, and, as day 0, in all. There are
-- two rows for each pair, one from each side.
CREATE TABLE trader_pair (
    day       INTEGER NOT NULL, -- of the epoch, UTC; 0: all days
    user_key  INTEGER NOT NULL,
    other_key INTEGER NOT NULL,
    trades    INTEGER NOT NULL, -- completed or settled
    reversed  INTEGER NOT NULL, -- reversed trades
    volume    INTEGER NOT NULL, -- micro-units of the base currency
    ranked    INTEGER NOT NULL, -- of the volume, what counts for a rank
    PRIMARY KEY (day, user_key, other_key)
) WITHOUT ROWID;

-- Counts what changes the leaderboard, spread over some rows.
CREATE TABLE trader_version (
    slot    INTEGER NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL
);

-- When what a user traded changed last: which version of which slot it was.
CREATE TABLE trader (
    user_key INTEGER NOT NULL PRIMARY KEY,
    slot     INTEGER NOT NULL,
    version  INTEGER NOT NULL
);
CREATE INDEX trader_changed ON trader (slot, version);

-- Answers to requests that must not be carried out twice, by the key that their
-- client gave them; see the package once.
CREATE TABLE idempotent_response (
    route        TEXT    NOT NULL,
    role         TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    request      BLOB    NOT NULL, -- SHA-256 of what was asked
    status       INTEGER NOT NULL,
    content_type TEXT    NOT NULL,
    location     TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    kept_at      INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL, -- 0: never
    version      INTEGER NOT NULL, -- of the bytes under the MAC; 0: no money, no seal
    key_id       TEXT    NOT NULL,
    mac          BLOB    NOT NULL, -- over all of this row but when it was kept
    PRIMARY KEY (route, role, user_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotent_response_expiry ON idempotent_response (expires_at) WHERE expires_at <> 0;

-- Contract: wallet account. The head of the chain of a user's entries in a
-- currency; house accounts are users named house:... Amounts are minor units.
CREATE TABLE wallet_account (
    user_id     TEXT    NOT NULL,
    currency    TEXT    NOT NULL,
    balance     INTEGER NOT NULL, -- held included
    held        INTEGER NOT NULL,
    last_number INTEGER NOT NULL, -- of its entries; 0: none
    head_hash   BLOB    NOT NULL, -- of the last entry; zeros: none
    version     INTEGER NOT NULL, -- of the bytes under the MAC
    key_id      TEXT    NOT NULL,
    mac         BLOB    NOT NULL, -- over all of this row
    PRIMARY KEY (user_id, currency)
) STRICT, WITHOUT ROWID;

-- Contract: wallet transaction. Its entries add up to nothing in each currency.
CREATE TABLE wallet_transaction (
    id              INTEGER PRIMARY KEY,
    kind            TEXT    NOT NULL, -- deposit, withdrawal, correction, reversal, sale, completion, settlement
    trade_id        INTEGER NOT NULL, -- 0: of none
    reverses        INTEGER NOT NULL, -- the transaction that it takes back; 0: none
    scope           TEXT    NOT NULL, -- of the idempotency key: route, role and user
    idempotency_key TEXT    NOT NULL, -- '': none was given
    note            TEXT    NOT NULL,
    entries         INTEGER NOT NULL, -- how many it has
    at              INTEGER NOT NULL,
    terms           BLOB    NOT NULL, -- SHA-256 of the trade as the transaction leaves it; zeros: of none
    version         INTEGER NOT NULL, -- of the bytes under the hash
    key_id          TEXT    NOT NULL,
    hash            BLOB    NOT NULL  -- HMAC over all of this row
) STRICT;
CREATE UNIQUE INDEX wallet_transaction_trade ON wallet_transaction (trade_id, kind) WHERE trade_id <> 0;
CREATE UNIQUE INDEX wallet_transaction_reverses ON wallet_transaction (reverses) WHERE reverses <> 0;
CREATE UNIQUE INDEX wallet_transaction_key ON wallet_transaction (scope, idempotency_key) WHERE idempotency_key <> '';

-- Contract: wallet entry, sealed in the chain of its account.
CREATE TABLE wallet_entry (
    user_id         TEXT    NOT NULL,
    currency        TEXT    NOT NULL,
    number          INTEGER NOT NULL, -- 1, 2, 3 and so on within the account
    transaction_id  INTEGER NOT NULL,
    type            TEXT    NOT NULL, -- deposit, withdrawal, correction, reversal, release, free, purchase, sale, saleReversal, fee, completion
    amount          INTEGER NOT NULL,
    balance         INTEGER NOT NULL, -- after it
    held            INTEGER NOT NULL, -- after it
    trade_id        INTEGER NOT NULL, -- 0: of none
    reverses        INTEGER NOT NULL, -- number of the account's entry that it takes back; 0: none
    idempotency_key TEXT    NOT NULL,
    fee_rule        TEXT    NOT NULL, -- of a sale; '': of none
    fee_version     INTEGER NOT NULL, -- of the set of rules; 0: of none
    at              INTEGER NOT NULL,
    posting_hash    BLOB    NOT NULL, -- the hash of its transaction
    version         INTEGER NOT NULL, -- of the bytes under the hash
    key_id          TEXT    NOT NULL,
    previous_hash   BLOB    NOT NULL,
    hash            BLOB    NOT NULL,
    PRIMARY KEY (user_id, currency, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX wallet_entry_transaction ON wallet_entry (transaction_id);
CREATE UNIQUE INDEX wallet_entry_reverses ON wallet_entry (user_id, currency, reverses) WHERE reverses <> 0;

-- The keys that have sealed something, or were to, and how to tell each from
-- another one of that id.
CREATE TABLE wallet_key (
    key_id    TEXT NOT NULL PRIMARY KEY,
    check_mac BLOB NOT NULL -- HMAC of the id
) STRICT, WITHOUT ROWID;

-- How the last verification of the whole ledger came out.
CREATE TABLE wallet_audit (
    slot         INTEGER NOT NULL PRIMARY KEY, -- 1
    verified_at  INTEGER NOT NULL, -- of what moment the ledger was
    finished_at  INTEGER NOT NULL,
    status       TEXT    NOT NULL, -- ok, failed, incomplete
    accounts     INTEGER NOT NULL,
    entries      INTEGER NOT NULL,
    transactions INTEGER NOT NULL,
    failures     INTEGER NOT NULL,
    checks       TEXT    NOT NULL  -- names of those that did not pass
) WITHOUT ROWID;

-- What is in the ledger stays as it is. REPLACE would delete without asking the
-- triggers of a DELETE.
-- +goose StatementBegin
CREATE TRIGGER wallet_entry_update BEFORE UPDATE ON wallet_entry
BEGIN SELECT raise(ABORT, 'ledger entries are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER wallet_entry_delete BEFORE DELETE ON wallet_entry
BEGIN SELECT raise(ABORT, 'ledger entries are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER wallet_entry_replace BEFORE INSERT ON wallet_entry
WHEN EXISTS (SELECT 1 FROM wallet_entry WHERE user_id = NEW.user_id AND currency = NEW.currency AND number = NEW.number)
    OR NEW.reverses <> 0
    AND EXISTS (SELECT 1 FROM wallet_entry WHERE user_id = NEW.user_id AND currency = NEW.currency AND reverses = NEW.reverses AND reverses <> 0)
BEGIN SELECT raise(ABORT, 'ledger entries are never replaced'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER wallet_transaction_update BEFORE UPDATE ON wallet_transaction
BEGIN SELECT raise(ABORT, 'ledger transactions are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER wallet_transaction_delete BEFORE DELETE ON wallet_transaction
BEGIN SELECT raise(ABORT, 'ledger transactions are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER wallet_transaction_replace BEFORE INSERT ON wallet_transaction
WHEN EXISTS (SELECT 1 FROM wallet_transaction WHERE id = NEW.id)
    OR NEW.trade_id <> 0 AND EXISTS (SELECT 1 FROM wallet_transaction WHERE trade_id = NEW.trade_id AND kind = NEW.kind AND trade_id <> 0)
    OR NEW.reverses <> 0 AND EXISTS (SELECT 1 FROM wallet_transaction WHERE reverses = NEW.reverses AND reverses <> 0)
    OR NEW.idempotency_key <> ''
    AND EXISTS (SELECT 1 FROM wallet_transaction WHERE scope = NEW.scope AND idempotency_key = NEW.idempotency_key AND idempotency_key <> '')
BEGIN SELECT raise(ABORT, 'ledger transactions are never replaced'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER wallet_account_delete BEFORE DELETE ON wallet_account
BEGIN SELECT raise(ABORT, 'wallet accounts are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER trade_delete BEFORE DELETE ON trade
BEGIN SELECT raise(ABORT, 'trades are never deleted'); END;
-- +goose StatementEnd

-- Contract: fee rule set. Each version is an activation, the greatest is in
-- force; none is ever changed.
CREATE TABLE fee_rule_set (
    version      INTEGER NOT NULL PRIMARY KEY,
    digest       TEXT    NOT NULL, -- of rules
    rules        TEXT    NOT NULL, -- JSON, in its canonical form
    source       TEXT    NOT NULL, -- where it was read: built-in, a file, an address; or the version that it repeats
    mark         TEXT    NOT NULL, -- by which the source tells that it has not changed
    activated_at INTEGER NOT NULL,
    activated_by TEXT    NOT NULL,
    seal_version INTEGER NOT NULL, -- of the bytes under the MAC
    key_id       TEXT    NOT NULL,
    previous_mac BLOB    NOT NULL, -- of the version before; zeros: the chain begins here
    mac          BLOB    NOT NULL  -- over all of this row, the rules by their digest
);
-- +goose StatementBegin
CREATE TRIGGER fee_rule_set_update BEFORE UPDATE ON fee_rule_set
BEGIN SELECT raise(ABORT, 'fee rules are never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER fee_rule_set_delete BEFORE DELETE ON fee_rule_set
BEGIN SELECT raise(ABORT, 'fee rules are never deleted'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER fee_rule_set_replace BEFORE INSERT ON fee_rule_set
WHEN EXISTS (SELECT 1 FROM fee_rule_set WHERE version = NEW.version)
BEGIN SELECT raise(ABORT, 'fee rules are never replaced'); END;
-- +goose StatementEnd
