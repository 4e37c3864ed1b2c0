-- +goose Up
-- Times are microseconds since 1970 in UTC; 0 means none. Amounts are micro-units (10^-6)
-- of a currency. Names compare byte for byte.

CREATE TABLE setting (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- An item: a name, or a phase of a name. All amounts are in the base currency.
CREATE TABLE item (
    id               INTEGER PRIMARY KEY,        -- bucket << 32, plus a number
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
    interval_low     INTEGER NOT NULL DEFAULT 0, -- interval around consensus
    interval_high    INTEGER NOT NULL DEFAULT 0,
    markets          INTEGER NOT NULL DEFAULT 0,
    used_markets     INTEGER NOT NULL DEFAULT 0,
    candidate        INTEGER NOT NULL DEFAULT 0,
    candidate_at     INTEGER NOT NULL DEFAULT 0,
    guard            TEXT    NOT NULL DEFAULT '', -- JSON: further state of the price guard (pricing.EncodeGuard)
    range_low        INTEGER NOT NULL DEFAULT 0, -- range of all accepted prices of the last week or more
    range_high       INTEGER NOT NULL DEFAULT 0,
    price_updated_at INTEGER NOT NULL DEFAULT 0, -- when the price last changed
    price_checked_at INTEGER NOT NULL DEFAULT 0, -- time of the newest quote of the last estimate that confirmed the price
    estimated_at     INTEGER NOT NULL DEFAULT 0, -- last run that estimated the item
    quotes_at        INTEGER NOT NULL DEFAULT 0, -- earliest fetch of the quotes behind the estimate; the TTL starts here
    rate_set         INTEGER NOT NULL DEFAULT 0, -- exchange rates of the last estimate; 0: none configured
    level_set        INTEGER NOT NULL DEFAULT 0, -- level set of the last estimate; 0: no levels known
    no_sales_since   INTEGER NOT NULL DEFAULT 0,
    retry_at         INTEGER NOT NULL DEFAULT 0, -- end of the no-sales pause
    failures         INTEGER NOT NULL DEFAULT 0, -- consecutive runs without a response
    rev              INTEGER NOT NULL DEFAULT 0, -- counts estimates; prevents lost updates
    CHECK (price >= 0)
);
CREATE UNIQUE INDEX item_key ON item (app_id, name, phase);
-- Items without a price. The planner uses this index only for statements with the same
-- condition. The condition is on the status, because an index on the price would be
-- updated with each price.
CREATE INDEX item_unpriced ON item (app_id, name, phase) WHERE status = 5;
-- Items with a held price. They are few.
CREATE INDEX item_held ON item (id) WHERE candidate > 0;

-- Number of commits that changed prices of a name bucket. No row: none.
CREATE TABLE price_version (
    bucket  INTEGER NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL
);

-- Processes that may commit new prices, on PostgreSQL. Empty on SQLite, where one process writes.
CREATE TABLE price_writer (
    owner TEXT NOT NULL PRIMARY KEY -- unique for each process
);

-- Exchange rates of runs. They explain the estimates that used them.
CREATE TABLE rate_set (
    id     INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE, -- SHA-256 of rates, which may be too long for an index
    rates  TEXT NOT NULL         -- JSON: [{"currency","rate","date"}], sorted by currency
);

-- The last exchange rates of each source that provides them.
CREATE TABLE rate_source (
    source        TEXT    NOT NULL PRIMARY KEY, -- ecb, file
    rate_set      INTEGER NOT NULL,             -- the last valid rates; 0: none yet
    read_at       INTEGER NOT NULL,             -- when they were read
    due_at        INTEGER NOT NULL,             -- no request before this time
    last_error    TEXT    NOT NULL,             -- why newer rates were refused; '': no error
    last_error_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE market (
    id       INTEGER PRIMARY KEY,
    provider TEXT NOT NULL,
    key      TEXT NOT NULL,
    title    TEXT NOT NULL,
    UNIQUE (provider, key)
);

-- All quotes of an item: a JSON array with one array per market, see market_snapshot. The
-- row is updated when a quoted value changes, not when it is confirmed.
CREATE TABLE item_quotes (
    item_id INTEGER PRIMARY KEY,
    quotes  TEXT NOT NULL
);

-- The newest quote of each item and market. If fetched_at is 0, the time is
-- item.quotes_at.
CREATE VIEW market_snapshot AS
SELECT q.item_id,
    json_extract(m.value, '$[0]') AS market_id,
    json_extract(m.value, '$[1]') AS currency,
    json_extract(m.value, '$[2]') AS ask, -- 0: none
    json_extract(m.value, '$[3]') AS bid,
    json_extract(m.value, '$[4]') AS sale,
    json_extract(m.value, '$[5]') AS listings, -- -1: unknown
    json_extract(m.value, '$[6]') AS sales, -- -1: unknown
    json_extract(m.value, '$[7]') AS sales_window, -- seconds
    json_extract(m.value, '$[8]') * 3600000000 AS market_time, -- the market's own time, to the hour
    json_extract(m.value, '$[9]') AS fetched_at,
    json_extract(m.value, '$[10]') AS reason -- pricing.Reason; '': used
FROM item_quotes q, json_each(q.quotes) m;

-- History of prices and quotes. An estimate adds a row if the price, its status or the
-- amount of a quote changed. The row holds all inputs of the estimate.
CREATE TABLE price_point (
    item_id        INTEGER NOT NULL,
    at             INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL, -- updated_at to level_set have the meaning of the columns of item
    checked_at     INTEGER NOT NULL,
    quotes_at      INTEGER NOT NULL,
    price          INTEGER NOT NULL,
    status         INTEGER NOT NULL, -- pricing.Status
    average        INTEGER NOT NULL,
    median         INTEGER NOT NULL,
    consensus      INTEGER NOT NULL,
    interval_low   INTEGER NOT NULL,
    interval_high  INTEGER NOT NULL,
    candidate      INTEGER NOT NULL,
    candidate_at   INTEGER NOT NULL,
    rate_set       INTEGER NOT NULL,
    level_set      INTEGER NOT NULL,
    method_version INTEGER NOT NULL, -- pricing.MethodVersion
    used           TEXT    NOT NULL, -- ids of the markets behind the price, separated by commas
    method         TEXT    NOT NULL, -- pricing.Policy.Label
    guard          TEXT    NOT NULL,
    quotes         TEXT    NOT NULL, -- as in item_quotes
    PRIMARY KEY (item_id, at)
) WITHOUT ROWID;

-- The prices of an item in a day, and those of each market, from points that are no longer
-- stored. A day without a new price has no row: its prices are the close of the day before.
CREATE TABLE price_day (
    item_id   INTEGER NOT NULL,
    market_id INTEGER NOT NULL DEFAULT 0, -- 0: the price of the item
    day       INTEGER NOT NULL, -- start of the day in UTC
    open      INTEGER NOT NULL,
    high      INTEGER NOT NULL,
    low       INTEGER NOT NULL,
    close     INTEGER NOT NULL,
    changes   INTEGER NOT NULL, -- number of new prices
    currency  TEXT    NOT NULL DEFAULT '', -- of the prices of a market; empty: the base currency
    PRIMARY KEY (item_id, market_id, day)
) WITHOUT ROWID;

-- A process that uses this database. On PostgreSQL, each process increments its heartbeat
-- twice a second. If a heartbeat does not change for some seconds, another process
-- releases the claims of that owner.
CREATE TABLE instance (
    owner        TEXT    NOT NULL PRIMARY KEY, -- name in claims; unique for each process
    version      TEXT    NOT NULL,
    endpoints    TEXT    NOT NULL,             -- JSON list of what it can request: "provider/file"
    started_at   INTEGER NOT NULL,
    heartbeat    INTEGER NOT NULL,             -- counter, increased by the process
    heartbeat_at INTEGER NOT NULL,             -- by the clock of the process; for display only
    report       TEXT    NOT NULL,             -- JSON: state of the providers that it requests; empty before the first heartbeat
    sync_time    INTEGER NOT NULL DEFAULT 0, -- time in which inventory syncs have run in the process, in microseconds
    modules      TEXT    NOT NULL DEFAULT '' -- MODULES of the process
) WITHOUT ROWID;

-- A refresh of prices.
CREATE TABLE refresh_job (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    kind             TEXT    NOT NULL, -- bulk, missing, items
    forced           INTEGER NOT NULL,
    state            TEXT    NOT NULL, -- queued, running, finished, failed, cancelled
    stage            TEXT    NOT NULL, -- plan, fetch, estimate, apply, done
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    requested_by     TEXT    NOT NULL,
    retry_of         INTEGER NOT NULL DEFAULT 0,
    retry_cause      TEXT    NOT NULL DEFAULT '', -- only items that failed with this error are retried; '': all
    owner            TEXT    NOT NULL DEFAULT '', -- instance that validates the responses, or did so last
    chosen           TEXT    NOT NULL DEFAULT '', -- JSON: ids of the items of a job of the kind items
    created_at       INTEGER NOT NULL,
    started_at       INTEGER NOT NULL DEFAULT 0, -- end of the plan stage
    fetched_at       INTEGER NOT NULL DEFAULT 0, -- end of the fetch stage
    estimated_at     INTEGER NOT NULL DEFAULT 0, -- end of the estimate stage
    finished_at      INTEGER NOT NULL DEFAULT 0,
    total            INTEGER NOT NULL DEFAULT 0,
    skipped_ttl      INTEGER NOT NULL DEFAULT 0,
    skipped_no_sales INTEGER NOT NULL DEFAULT 0,
    batches          INTEGER NOT NULL DEFAULT 0,
    apply_cursor     INTEGER NOT NULL DEFAULT 0, -- next batch, if prices are applied by batch
    rate_set         INTEGER NOT NULL DEFAULT 0, -- exchange rates of its estimates
    last_error       TEXT    NOT NULL DEFAULT '',
    outcome          TEXT    NOT NULL DEFAULT '', -- complete, partial, failed; '' while the job is active
    market_gaps      TEXT    NOT NULL DEFAULT ''  -- JSON: missing markets and the reasons; '': none
);
-- The planner uses a partial index below only for statements with exactly the same
-- condition: state IN ('queued', 'running') AND state = 'queued'.
CREATE UNIQUE INDEX refresh_job_live ON refresh_job (kind) WHERE state IN ('queued', 'running');

-- A range of name buckets of a job, estimated in one transaction.
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
    skipped_backoff INTEGER NOT NULL DEFAULT 0, -- circuit breaker, or a wait that the provider demands
    cancelled       INTEGER NOT NULL DEFAULT 0,
    changed         INTEGER NOT NULL DEFAULT 0, -- number of updated items with a new price
    PRIMARY KEY (job_id, batch)
) WITHOUT ROWID;
CREATE INDEX refresh_batch_open ON refresh_batch (job_id) WHERE state IN ('pending', 'running');

-- The items of a batch, in one row. The plan stage writes the items to estimate. The
-- estimate stage replaces them with their outcomes. The view refresh_item shows a row per
-- item.
CREATE TABLE refresh_batch_items (
    job_id   INTEGER NOT NULL,
    batch    INTEGER NOT NULL,
    failures TEXT    NOT NULL DEFAULT '[]', -- JSON: {error, count, items} of each error, with the ids of some items
    planned  TEXT    NOT NULL, -- JSON: [item id, price before] of each item to estimate
    outcomes TEXT    NOT NULL, -- JSON: [item id, price before, price after, state, reason, error] of each other item
    PRIMARY KEY (job_id, batch)
);

-- The items of each job, with their outcomes.
CREATE VIEW refresh_item AS
SELECT p.job_id, p.batch,
    json_extract(e.value, '$[0]') AS item_id,
    CASE WHEN b.state = 'cancelled' THEN 'cancelled' ELSE 'pending' END AS state, -- pending, updated, skipped, noQuote, failed, cancelled
    '' AS reason, -- reason of a skip: ttl, noSales, budget, paused, backoff
    0 AS attempts,
    json_extract(e.value, '$[1]') AS price_before,
    -1 AS price_after, -- -1 until estimated
    '' AS error
FROM refresh_batch_items p JOIN refresh_batch b ON b.job_id = p.job_id AND b.batch = p.batch, json_each(p.planned) e
UNION ALL
SELECT o.job_id, o.batch,
    json_extract(e.value, '$[0]'),
    json_extract(e.value, '$[3]'),
    json_extract(e.value, '$[4]'),
    CASE WHEN json_extract(e.value, '$[4]') IN ('ttl', 'noSales') THEN 0 ELSE 1 END,
    json_extract(e.value, '$[1]'),
    json_extract(e.value, '$[2]'),
    json_extract(e.value, '$[5]')
FROM refresh_batch_items o, json_each(o.outcomes) e;

-- A part of the inventory rows that a job applies prices to. A worker locks the row of a
-- shard while it applies prices to its next inventory rows.
CREATE TABLE apply_shard (
    job_id  INTEGER NOT NULL,
    shard   INTEGER NOT NULL,
    next_id INTEGER NOT NULL, -- next inventory id
    end_id  INTEGER NOT NULL, -- exclusive
    PRIMARY KEY (job_id, shard)
) WITHOUT ROWID;

-- One fetch from a provider: a file, or some names of a game.
CREATE TABLE fetch_unit (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id     INTEGER NOT NULL,
    provider   TEXT    NOT NULL,
    app_id     INTEGER NOT NULL,
    file       TEXT    NOT NULL, -- '' for names
    names      BLOB,             -- encoded; NULL for a file
    size       INTEGER NOT NULL DEFAULT 0, -- number of names; for a background fetch, the number still open
    batch_from INTEGER NOT NULL, -- batch_from to batch_to: batches that wait for the unit
    batch_to   INTEGER NOT NULL,
    state      TEXT    NOT NULL, -- pending, running, done, failed, deferred, cancelled
    owner      TEXT    NOT NULL DEFAULT '',
    token      INTEGER NOT NULL DEFAULT 0,
    attempts   INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL DEFAULT 0,
    fetched_at INTEGER NOT NULL DEFAULT 0,
    stated_at  INTEGER NOT NULL DEFAULT 0, -- the provider's own time of the response
    blob_unit  INTEGER NOT NULL DEFAULT 0, -- unit whose blobs hold the response: this one or an earlier one
    requests   INTEGER NOT NULL DEFAULT 0, -- requests sent, except the last one of a running attempt
    reserved   INTEGER NOT NULL DEFAULT 0, -- requests of the current claim that may have been sent but are not in requests
    detached   INTEGER NOT NULL DEFAULT 0, -- 1: the job continued without the unit and does not use its response; see error. 2: the same, and a request was under way, which counts as a failure. 3: a name of the background fetch
    bytes      INTEGER NOT NULL DEFAULT 0,
    silent     TEXT    NOT NULL DEFAULT '', -- JSON: ids of markets that the response lacks although the provider was asked for them
    error_kind TEXT    NOT NULL DEFAULT '',
    error      TEXT    NOT NULL DEFAULT ''
);
CREATE INDEX fetch_unit_job ON fetch_unit (job_id, provider);
CREATE INDEX fetch_unit_open ON fetch_unit (provider, id) WHERE state IN ('pending', 'running');
CREATE INDEX fetch_unit_claimed ON fetch_unit (owner) WHERE state = 'running';
CREATE INDEX fetch_unit_file ON fetch_unit (provider, app_id, file, id) WHERE file <> '';

-- A name that is requested from a provider with a budget for requests by name.
CREATE TABLE background_name (
    provider      TEXT    NOT NULL,
    app_id        INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    requested_at  INTEGER NOT NULL DEFAULT 0, -- last request, regardless of its result
    rank          INTEGER NOT NULL DEFAULT 0, -- position in the order of background requests; 0: none
    missing_since INTEGER NOT NULL DEFAULT 0, -- since when the price is missing, which gives it priority; 0: not missing
    job_id        INTEGER NOT NULL DEFAULT 0, -- job that planned and counts it
    unit_id       INTEGER NOT NULL DEFAULT 0, -- fetch_unit that requests it, while that is open
    PRIMARY KEY (provider, app_id, name)
) WITHOUT ROWID;
CREATE INDEX background_name_open ON background_name (provider, rank) WHERE rank <> 0;
CREATE INDEX background_name_missing ON background_name (provider, missing_since) WHERE missing_since <> 0;
CREATE INDEX background_name_unit ON background_name (unit_id) WHERE unit_id <> 0;

-- A response, encoded, by name bucket.
CREATE TABLE fetch_blob (
    unit_id INTEGER NOT NULL,
    bucket  INTEGER NOT NULL,
    data    BLOB    NOT NULL
);
CREATE UNIQUE INDEX fetch_blob_key ON fetch_blob (unit_id, bucket);

-- The result of a market in a fetch unit of a job. A unit may contain several markets; bytes and
-- requests count the whole unit.
CREATE TABLE market_fetch (
    job_id     INTEGER NOT NULL,
    unit_id    INTEGER NOT NULL, -- 0: all units of a provider that is requested by name
    market_id  INTEGER NOT NULL,
    fetched_at INTEGER NOT NULL,
    quotes     INTEGER NOT NULL,
    rejected   INTEGER NOT NULL,
    requests   INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    outcome    TEXT    NOT NULL, -- ok, silent, quarantined
    PRIMARY KEY (job_id, unit_id, market_id)
) WITHOUT ROWID;

-- The newest valid response of each market of a file, and its quarantine.
CREATE TABLE market_file (
    market_id         INTEGER NOT NULL,
    app_id            INTEGER NOT NULL,
    file              TEXT    NOT NULL,
    unit_id           INTEGER NOT NULL DEFAULT 0, -- unit whose blobs hold the response
    fetched_at        INTEGER NOT NULL DEFAULT 0,
    quotes            INTEGER NOT NULL DEFAULT 0,
    quarantine        TEXT    NOT NULL DEFAULT '', -- why the last response was refused
    quarantined_since INTEGER NOT NULL DEFAULT 0,
    refused           TEXT    NOT NULL DEFAULT '', -- the refused response compared with the valid one (refresh.Comparison); '' if the last response was valid
    accepted_at       INTEGER NOT NULL DEFAULT 0,  -- when an operator accepted such responses
    PRIMARY KEY (market_id, app_id, file)
) WITHOUT ROWID;

-- Levels, noise and moves of a game's markets after a run (pricing.Set).
CREATE TABLE level_set (
    id         INTEGER PRIMARY KEY,
    app_id     INTEGER NOT NULL,
    learned_at INTEGER NOT NULL,
    data       BLOB NOT NULL
);
CREATE INDEX level_set_app ON level_set (app_id, id);

-- Inputs of the estimates of a job for a game.
CREATE TABLE refresh_level (
    job_id    INTEGER NOT NULL,
    app_id    INTEGER NOT NULL,
    level_set INTEGER NOT NULL,
    movers    BLOB NOT NULL, -- quotes that moved by themselves (pricing.Movers)
    PRIMARY KEY (job_id, app_id)
) WITHOUT ROWID;

-- What validation stores about a market between runs.
CREATE TABLE market_validation (
    market_id INTEGER NOT NULL,
    app_id    INTEGER NOT NULL,
    state     BLOB NOT NULL, -- pricing.MarketState, at most 160 bytes
    history   BLOB NOT NULL, -- valid responses of the last eight days (pricing.History), 15 to 21 bytes per name
    PRIMARY KEY (market_id, app_id)
);

-- Results of the last responses of a market. The rows are kept when their jobs are
-- deleted.
CREATE TABLE market_state (
    market_id     INTEGER NOT NULL PRIMARY KEY,
    job_id        INTEGER NOT NULL DEFAULT 0,  -- last job that requested the market
    fetched_at    INTEGER NOT NULL DEFAULT 0,
    quotes        INTEGER NOT NULL DEFAULT 0,  -- number in all responses for that job
    rejected      INTEGER NOT NULL DEFAULT 0,
    outcome       TEXT    NOT NULL DEFAULT '', -- result of the last response
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

-- Results of the last fetches of a provider's files. File '' means requests by name.
CREATE TABLE provider_file (
    provider      TEXT    NOT NULL,
    file          TEXT    NOT NULL,
    last_success  INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT    NOT NULL DEFAULT '',
    last_error_at INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0, -- consecutive failures
    PRIMARY KEY (provider, file)
) WITHOUT ROWID;

-- A host of a provider that demanded a wait.
CREATE TABLE provider_host (
    provider      TEXT    NOT NULL,
    host          TEXT    NOT NULL, -- '' if the provider has a single host
    blocked_at    INTEGER NOT NULL, -- when the host demanded the wait
    blocked_until INTEGER NOT NULL,
    PRIMARY KEY (provider, host)
) WITHOUT ROWID;

-- Requests within the limit of a host. There is one slot for each allowed request, or for
-- several if the limit is large. A full slot is free again one period after its last
-- request.
CREATE TABLE budget_slot (
    provider TEXT    NOT NULL,
    host     TEXT    NOT NULL,
    slot     INTEGER NOT NULL, -- starts at 0
    used     INTEGER NOT NULL, -- requests
    at       INTEGER NOT NULL, -- time of the last request
    PRIMARY KEY (provider, host, slot)
) WITHOUT ROWID;

-- Used requests of a host's quotas.
CREATE TABLE budget_quota (
    provider  TEXT    NOT NULL,
    host      TEXT    NOT NULL,
    period    TEXT    NOT NULL, -- day, month
    starts_at INTEGER NOT NULL, -- start of the day or month, UTC
    used      INTEGER NOT NULL, -- requests since starts_at
    PRIMARY KEY (provider, host, period)
) WITHOUT ROWID;

-- Quota that a host reports, until it resets.
CREATE TABLE reported_quota (
    provider       TEXT    NOT NULL,
    host           TEXT    NOT NULL,
    reported_limit INTEGER NOT NULL, -- 0: not reported
    reported_left  INTEGER NOT NULL, -- requests left, minus the requests sent since the report
    reported_at    INTEGER NOT NULL, -- time of the last response that reported it
    resets_at      INTEGER NOT NULL,
    PRIMARY KEY (provider, host)
) WITHOUT ROWID;

-- Requests to a host in each of the last hours, for hosts with a quota or a long limit.
-- They are used to forecast when the budget runs out.
CREATE TABLE budget_hour (
    provider  TEXT    NOT NULL,
    host      TEXT    NOT NULL,
    hour      INTEGER NOT NULL, -- hours since 1970, modulo 26
    starts_at INTEGER NOT NULL,
    used      INTEGER NOT NULL,
    PRIMARY KEY (provider, host, hour)
) WITHOUT ROWID;

-- Requests to a provider's host in each half hour of the last 35 days, by result and duration.
-- All instances add to the rows.
CREATE TABLE request_sample (
    provider TEXT    NOT NULL,
    host     TEXT    NOT NULL,
    at       INTEGER NOT NULL, -- start of the half hour
    result   TEXT    NOT NULL, -- ok, notModified, limited, refused, failed, noResponse, invalid, cancelled
    up_to    INTEGER NOT NULL, -- upper bound of the duration (provider.LatencyBounds); 0: above all bounds
    requests INTEGER NOT NULL,
    duration INTEGER NOT NULL, -- sum
    bytes    INTEGER NOT NULL, -- sum
    PRIMARY KEY (provider, host, at, result, up_to)
) WITHOUT ROWID;
CREATE INDEX request_sample_at ON request_sample (at);

-- State of all prices in scope and of all budgets at each half hour of the last 35 days.
CREATE TABLE price_sample (
    at          INTEGER NOT NULL PRIMARY KEY,
    fresh       INTEGER NOT NULL, -- items with a price that is at most 24 hours old
    stale       INTEGER NOT NULL, -- items with an older price
    unknown     INTEGER NOT NULL, -- items without a price
    quote_age   INTEGER NOT NULL, -- 95th percentile of the age of the quotes behind the prices; -1: no price
    budget_left INTEGER NOT NULL  -- smallest share that is left of a budget, in millionths; -1: no provider has a budget
) WITHOUT ROWID;

-- Budgets that were reported as low, until they renew.
CREATE TABLE budget_low (
    provider TEXT    NOT NULL,
    host     TEXT    NOT NULL,
    budget   TEXT    NOT NULL, -- limit, day, month, reported
    until    INTEGER NOT NULL,
    PRIMARY KEY (provider, host, budget)
) WITHOUT ROWID;

-- Events for operators and platforms. Each is written in the transaction that caused it.
-- Its number is assigned after the commit, so that numbers follow the order of commits.
-- An event with several price changes has the numbers from number - size + 1 to number.
CREATE TABLE event (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    kind   TEXT    NOT NULL, -- price.changed, job.finished, ...
    at     INTEGER NOT NULL,
    size   INTEGER NOT NULL DEFAULT 1,
    number INTEGER NOT NULL DEFAULT 0, -- 0: not assigned yet
    data   TEXT    NOT NULL  -- JSON
);
CREATE INDEX event_number ON event (number);
-- For the list of events without the frequent kinds.
CREATE INDEX event_rare ON event (id)
    WHERE kind NOT IN ('price.changed', 'inventory.priced', 'listing.sold', 'listing.cancelled', 'listing.expired', 'trade.completed', 'trade.reversed', 'trade.settled');

-- One row, which is locked while numbers are assigned to events.
CREATE TABLE event_feed (
    id      INTEGER NOT NULL PRIMARY KEY, -- 1
    last    INTEGER NOT NULL, -- last assigned number
    expired INTEGER NOT NULL, -- highest number of a deleted price.changed event
    expired_events INTEGER NOT NULL -- highest number of a deleted event
);

-- Addresses that get events. Deliveries are in the order of the events' numbers.
CREATE TABLE webhook (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    url              TEXT    NOT NULL,
    format           TEXT    NOT NULL, -- standard, slack, discord
    filter           TEXT    NOT NULL, -- JSON
    disabled         TEXT    NOT NULL, -- operator, gone, failing; '': enabled
    secret           TEXT    NOT NULL, -- in clear text, because it signs each message
    old_secret       TEXT    NOT NULL, -- also signs until old_secret_until; '': none
    old_secret_until INTEGER NOT NULL,
    cursor           INTEGER NOT NULL, -- number of the last event that was delivered, filtered out or abandoned
    attempts         INTEGER NOT NULL, -- failed attempts since the last success
    failing_since    INTEGER NOT NULL, -- 0: the last attempt succeeded
    next_at          INTEGER NOT NULL, -- time of the next attempt; 0: at the next event
    tried_at         INTEGER NOT NULL, -- last attempt; 0: none
    delivered_at     INTEGER NOT NULL, -- last success; 0: none
    last_error       TEXT    NOT NULL, -- of the last attempt; '': it succeeded
    owner            TEXT    NOT NULL, -- instance that sends; '': none
    token            INTEGER NOT NULL, -- fencing token, incremented by each claim
    revision         INTEGER NOT NULL, -- incremented by each change of the settings
    created_at       INTEGER NOT NULL
);

-- Recent messages of webhooks. The payload is computed again from the event.
CREATE TABLE webhook_delivery (
    webhook_id  INTEGER NOT NULL,
    number      INTEGER NOT NULL, -- number of the event, or of the last price change in the message
    first       INTEGER NOT NULL, -- number of the first price change in the message
    kind        TEXT    NOT NULL, -- kind of the event; '' if state is lost
    state       TEXT    NOT NULL, -- delivered, retrying, failed, lost
    attempts    INTEGER NOT NULL,
    status      INTEGER NOT NULL, -- HTTP status of the last attempt; 0: none
    duration    INTEGER NOT NULL, -- of the last attempt
    error       TEXT    NOT NULL, -- of the last attempt; '': it succeeded
    at          INTEGER NOT NULL, -- last attempt
    PRIMARY KEY (webhook_id, number)
) WITHOUT ROWID;

-- Named API keys. Only the hashes of secrets are stored.
CREATE TABLE api_key (
    name       TEXT    NOT NULL PRIMARY KEY,
    scopes     TEXT    NOT NULL, -- such as 'prices:read wallet:write'
    per_minute INTEGER NOT NULL, -- requests per minute and instance; 0: no limit
    secret     TEXT    NOT NULL UNIQUE, -- SHA-256 in hex
    old_secret TEXT    NOT NULL, -- SHA-256 of the secret before the last rotation; '': none
    old_until  INTEGER NOT NULL, -- end of the old secret
    created_at INTEGER NOT NULL,
    rotated_at INTEGER NOT NULL, -- 0: never
    expires_at INTEGER NOT NULL  -- 0: never
) WITHOUT ROWID;
CREATE INDEX api_key_old ON api_key (old_secret);

-- Operators of the page. Only hashes of passwords are stored.
CREATE TABLE operator_account (
    name       TEXT    NOT NULL PRIMARY KEY,
    role       TEXT    NOT NULL, -- read, admin
    password   TEXT    NOT NULL, -- Argon2id, with its parameters
    disabled   INTEGER NOT NULL, -- 1: cannot sign in
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL  -- last change of the password or the state
) WITHOUT ROWID;

-- Signed-in browsers. Only the hashes of tokens are stored.
CREATE TABLE web_session (
    id         TEXT    NOT NULL PRIMARY KEY, -- SHA-256 of the token in hex
    role       TEXT    NOT NULL, -- read, admin
    operator   TEXT    NOT NULL, -- '': signed in with a secret of the settings
    bond       TEXT    NOT NULL, -- proves that the secret that opened the session is still valid
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL
) WITHOUT ROWID;

-- One row for each request that changed something, written in the transaction of the change.
CREATE TABLE audit_entry (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    actor      TEXT    NOT NULL, -- admin, market, platform, page, operator:NAME, key:NAME
    address    TEXT    NOT NULL, -- of the client
    action     TEXT    NOT NULL, -- method and route, such as 'DELETE /api/keys/{name}'
    target     TEXT    NOT NULL, -- path and query of the request
    request_id TEXT    NOT NULL
);

-- Hosts of providers that fail repeatedly and get no requests for a while.
CREATE TABLE provider_down (
    provider TEXT    NOT NULL,
    host     TEXT    NOT NULL, -- '' if the provider has a single host
    since    INTEGER NOT NULL,
    PRIMARY KEY (provider, host)
) WITHOUT ROWID;

-- Items that a sync found without a price. An item is queued only once.
CREATE TABLE missing_price (
    item_id    INTEGER NOT NULL PRIMARY KEY,
    queued_at  INTEGER NOT NULL,
    due_at     INTEGER NOT NULL, -- time of the next attempt; 0: immediately
    soonest_at INTEGER NOT NULL DEFAULT 0, -- earliest due_at that a sync or lookup can set: the last attempt plus the retry pause
    attempts   INTEGER NOT NULL DEFAULT 0,
    job_id     INTEGER NOT NULL DEFAULT 0 -- job that works on it
);
CREATE INDEX missing_price_due ON missing_price (due_at);

CREATE TABLE platform_user (
    id           INTEGER PRIMARY KEY,
    user_id      TEXT    NOT NULL UNIQUE, -- chosen by the platform
    steam_id     TEXT    NOT NULL DEFAULT '',
    display_name TEXT    NOT NULL DEFAULT '',
    leaderboard  INTEGER NOT NULL DEFAULT 1,
    created_at   INTEGER NOT NULL,
    deleted_at   INTEGER NOT NULL DEFAULT 0 -- 0: not deleted; the row of a deleted user keeps the id that trades refer to
);
CREATE UNIQUE INDEX platform_user_steam ON platform_user (steam_id) WHERE steam_id <> '';
CREATE INDEX platform_user_deleted ON platform_user (id) WHERE deleted_at <> 0;

-- Time of the newest inventory of a user, game and context.
CREATE TABLE inventory_snapshot (
    user_key    INTEGER NOT NULL,
    app_id      INTEGER NOT NULL,
    context_id  TEXT    NOT NULL,
    snapshot_at INTEGER NOT NULL,
    PRIMARY KEY (user_key, app_id, context_id)
) WITHOUT ROWID;

-- Value of each user's inventory at the end of a day.
CREATE TABLE inventory_value (
    user_key INTEGER NOT NULL,
    day      INTEGER NOT NULL, -- start of the day in UTC
    value    TEXT    NOT NULL, -- decimal number in the base currency
    assets   INTEGER NOT NULL, -- rows
    unpriced INTEGER NOT NULL, -- rows without a value
    PRIMARY KEY (user_key, day)
) WITHOUT ROWID;

-- Inventories with rows that wait for the first price of their item. The transaction that writes the event
-- inventory.priced deletes the row.
CREATE TABLE inventory_waiting (
    user_key   INTEGER NOT NULL,
    app_id     INTEGER NOT NULL,
    context_id TEXT    NOT NULL,
    since      INTEGER NOT NULL, -- time of the first sync that left such rows
    item_id    INTEGER NOT NULL, -- one of the items that it waits for
    PRIMARY KEY (user_key, app_id, context_id)
) WITHOUT ROWID;

-- The assets of users. One row per asset.
CREATE TABLE inventory (
    id          INTEGER PRIMARY KEY,
    user_key    INTEGER NOT NULL,
    app_id      INTEGER NOT NULL,
    context_id  TEXT    NOT NULL,
    asset_id    TEXT    NOT NULL,
    item_id     INTEGER NOT NULL, -- 0: no name, so no price
    class_id    TEXT    NOT NULL,
    instance_id TEXT    NOT NULL,
    amount      INTEGER NOT NULL,
    tradable    INTEGER NOT NULL,
    marketable  INTEGER NOT NULL,
    inspect     TEXT    NOT NULL,
    in_transfer INTEGER NOT NULL DEFAULT 0, -- sold, but no sync has shown the new owner yet
    value       INTEGER           -- estimatedValue of one piece; NULL: unknown
);
CREATE UNIQUE INDEX inventory_key ON inventory (user_key, app_id, context_id, asset_id);
CREATE INDEX inventory_item ON inventory (item_id);

-- Certificate and properties of an asset. An asset has a row if it has a certificate, an
-- inspect link or properties.
CREATE TABLE inspection (
    inventory_id      INTEGER PRIMARY KEY,
    user_key          INTEGER NOT NULL,
    state             TEXT    NOT NULL, -- inventory.InspectState
    code              TEXT    NOT NULL DEFAULT '', -- why it failed, or which values contradict each other
    source            TEXT    NOT NULL DEFAULT '', -- source of the decoded values: inventory.InspectSource
    given_seed        TEXT    NOT NULL, -- given_ columns: Steam's properties of the asset, as Steam writes them
    given_wear        TEXT    NOT NULL,
    given_charm       TEXT    NOT NULL,
    given_name_tag    TEXT    NOT NULL,
    given_certificate TEXT    NOT NULL,
    link_of_steam     INTEGER NOT NULL, -- inventory.inspect comes from Steam
    phase             TEXT    NOT NULL DEFAULT '', -- phase that the asset was moved to because of its finish
    wear              TEXT    NOT NULL DEFAULT '', -- decimal number
    seed              INTEGER NOT NULL DEFAULT -1, -- -1 here and below: unknown
    finish            INTEGER NOT NULL DEFAULT -1, -- paint index
    def_index         INTEGER NOT NULL DEFAULT -1,
    quality           INTEGER NOT NULL DEFAULT -1,
    rarity            INTEGER NOT NULL DEFAULT -1,
    kills             INTEGER NOT NULL DEFAULT -1, -- StatTrak counter
    charm             INTEGER NOT NULL DEFAULT -1, -- template of a charm
    name_tag          TEXT    NOT NULL DEFAULT '',
    stickers          TEXT    NOT NULL DEFAULT '[]', -- JSON: [inventory.Sticker]
    charms            TEXT    NOT NULL DEFAULT '[]'
);
CREATE INDEX inspection_pending ON inspection (user_key) WHERE state = 'pending';

-- A listing offers one asset. Prices are whole minor units of the currency.
CREATE TABLE listing (
    id         INTEGER PRIMARY KEY,
    seller_key INTEGER NOT NULL,
    app_id     INTEGER NOT NULL,
    context_id TEXT    NOT NULL,
    asset_id   TEXT    NOT NULL,
    item_id    INTEGER NOT NULL,
    amount     INTEGER NOT NULL,
    price      INTEGER NOT NULL, -- price of the whole amount
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

-- The sale of a listing.
CREATE TABLE trade (
    id             INTEGER PRIMARY KEY,
    listing_id     INTEGER NOT NULL UNIQUE,
    seller_key     INTEGER NOT NULL,
    buyer_key      INTEGER NOT NULL,
    app_id         INTEGER NOT NULL,
    context_id     TEXT    NOT NULL,
    asset_id       TEXT    NOT NULL, -- id in the seller's inventory
    item_id        INTEGER NOT NULL,
    amount         INTEGER NOT NULL,
    price          INTEGER NOT NULL, -- price, fee and net are minor units
    currency       TEXT    NOT NULL,
    payment_method TEXT    NOT NULL DEFAULT '', -- from the purchase, for the fee rules; '': not given
    country        TEXT    NOT NULL DEFAULT '', -- from the purchase, for the fee rules; '': not given
    fee            INTEGER NOT NULL DEFAULT 0,
    net            INTEGER NOT NULL DEFAULT 0,  -- amount for the seller
    fee_rule       TEXT    NOT NULL DEFAULT '',
    fee_version    INTEGER NOT NULL DEFAULT 0,
    transaction_id INTEGER NOT NULL DEFAULT 0,  -- wallet transaction
    state          TEXT    NOT NULL, -- pending, completed, reversed, settled
    created_at     INTEGER NOT NULL,
    completed_at   INTEGER NOT NULL DEFAULT 0,
    settle_at      INTEGER NOT NULL DEFAULT 0,
    settled_at     INTEGER NOT NULL DEFAULT 0,
    reversed_at    INTEGER NOT NULL DEFAULT 0,
    volume         INTEGER NOT NULL DEFAULT 0, -- micro-units of the base currency, as counted for top traders
    ranked         INTEGER NOT NULL DEFAULT 0, -- part of the volume that counts for the rank
    version        INTEGER NOT NULL DEFAULT 0, -- version of the bytes under the MAC
    key_id         TEXT    NOT NULL DEFAULT '',
    mac            BLOB    NOT NULL DEFAULT X'' -- covers the whole row
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

-- Trade totals of a user with another user, for each day and for all days together. Each
-- pair has two rows, one for each side.
CREATE TABLE trader_pair (
    day       INTEGER NOT NULL, -- days since 1970, UTC; 0: all days
    user_key  INTEGER NOT NULL,
    other_key INTEGER NOT NULL,
    trades    INTEGER NOT NULL, -- completed or settled
    reversed  INTEGER NOT NULL, -- reversed trades
    volume    INTEGER NOT NULL, -- micro-units of the base currency
    ranked    INTEGER NOT NULL, -- part of the volume that counts for the rank
    PRIMARY KEY (day, user_key, other_key)
) WITHOUT ROWID;

-- Counts changes of the leaderboard in several rows, so that trades do not wait for each
-- other.
CREATE TABLE trader_version (
    slot    INTEGER NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL
);

-- Version and slot of a user's last change in trader_version.
CREATE TABLE trader (
    user_key INTEGER NOT NULL PRIMARY KEY,
    slot     INTEGER NOT NULL,
    version  INTEGER NOT NULL
);
CREATE INDEX trader_changed ON trader (slot, version);

-- Responses to requests with an idempotency key: see the package idempotency.
CREATE TABLE idempotent_response (
    route        TEXT    NOT NULL,
    role         TEXT    NOT NULL,
    user_id      TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    request      BLOB    NOT NULL, -- SHA-256 of the request
    status       INTEGER NOT NULL,
    content_type TEXT    NOT NULL,
    location     TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    kept_at      INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL, -- 0: never
    version      INTEGER NOT NULL, -- version of the bytes under the MAC; 0: moves no money, not sealed
    key_id       TEXT    NOT NULL,
    mac          BLOB    NOT NULL, -- covers the whole row except kept_at
    PRIMARY KEY (route, role, user_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotent_response_expiry ON idempotent_response (expires_at) WHERE expires_at <> 0;

-- A wallet account: the state of a user and currency after the last entry of the chain.
-- House accounts are users named house:... Amounts are minor units.
CREATE TABLE wallet_account (
    user_id     TEXT    NOT NULL,
    currency    TEXT    NOT NULL,
    balance     INTEGER NOT NULL, -- includes the held amount
    held        INTEGER NOT NULL,
    last_number INTEGER NOT NULL, -- number of its last entry; 0: none
    head_hash   BLOB    NOT NULL, -- hash of the last entry; zeros: none
    version     INTEGER NOT NULL, -- version of the bytes under the MAC
    key_id      TEXT    NOT NULL,
    mac         BLOB    NOT NULL, -- covers the whole row
    PRIMARY KEY (user_id, currency)
) STRICT, WITHOUT ROWID;

-- A wallet transaction. In each currency, the sum of its entries is 0.
CREATE TABLE wallet_transaction (
    id              INTEGER PRIMARY KEY,
    kind            TEXT    NOT NULL, -- deposit, withdrawal, correction, reversal, sale, completion, settlement
    trade_id        INTEGER NOT NULL, -- 0: none
    reverses        INTEGER NOT NULL, -- transaction that it reverses; 0: none
    scope           TEXT    NOT NULL, -- scope of the idempotency key: route, role and user
    idempotency_key TEXT    NOT NULL, -- '': none
    note            TEXT    NOT NULL,
    entries         INTEGER NOT NULL, -- number of its entries
    at              INTEGER NOT NULL,
    terms           BLOB    NOT NULL, -- SHA-256 of the trade after the transaction; zeros: none
    version         INTEGER NOT NULL, -- version of the bytes under the hash
    key_id          TEXT    NOT NULL,
    hash            BLOB    NOT NULL  -- HMAC of the whole row
) STRICT;
CREATE UNIQUE INDEX wallet_transaction_trade ON wallet_transaction (trade_id, kind) WHERE trade_id <> 0;
CREATE UNIQUE INDEX wallet_transaction_reverses ON wallet_transaction (reverses) WHERE reverses <> 0;
CREATE UNIQUE INDEX wallet_transaction_key ON wallet_transaction (scope, idempotency_key) WHERE idempotency_key <> '';

-- A wallet entry, sealed in the chain of its account.
CREATE TABLE wallet_entry (
    user_id         TEXT    NOT NULL,
    currency        TEXT    NOT NULL,
    number          INTEGER NOT NULL, -- 1, 2, 3 and so on within the account
    transaction_id  INTEGER NOT NULL,
    type            TEXT    NOT NULL, -- deposit, withdrawal, correction, reversal, release, free, purchase, sale, saleReversal, fee, completion
    amount          INTEGER NOT NULL,
    balance         INTEGER NOT NULL, -- balance of the account after the entry
    held            INTEGER NOT NULL, -- held amount of the account after the entry
    trade_id        INTEGER NOT NULL, -- 0: none
    reverses        INTEGER NOT NULL, -- number of the entry of the same account that it reverses; 0: none
    idempotency_key TEXT    NOT NULL,
    fee_rule        TEXT    NOT NULL, -- rule that charged a sale; '': none
    fee_version     INTEGER NOT NULL, -- version of the fee rules; 0: none
    at              INTEGER NOT NULL,
    posting_hash    BLOB    NOT NULL, -- hash of its transaction
    version         INTEGER NOT NULL, -- version of the bytes under the hash
    key_id          TEXT    NOT NULL,
    previous_hash   BLOB    NOT NULL,
    hash            BLOB    NOT NULL,
    PRIMARY KEY (user_id, currency, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX wallet_entry_transaction ON wallet_entry (transaction_id);
CREATE UNIQUE INDEX wallet_entry_reverses ON wallet_entry (user_id, currency, reverses) WHERE reverses <> 0;

-- Keys that sealed rows. The check MAC detects another key with the same id.
CREATE TABLE wallet_key (
    key_id    TEXT NOT NULL PRIMARY KEY,
    check_mac BLOB NOT NULL -- HMAC of the key id
) STRICT, WITHOUT ROWID;

-- Result of the last verification of the whole ledger.
CREATE TABLE wallet_audit (
    slot         INTEGER NOT NULL PRIMARY KEY, -- always 1
    verified_at  INTEGER NOT NULL, -- the verified state is that of this time
    finished_at  INTEGER NOT NULL,
    status       TEXT    NOT NULL, -- ok, failed, incomplete
    accounts     INTEGER NOT NULL,
    entries      INTEGER NOT NULL,
    transactions INTEGER NOT NULL,
    failures     INTEGER NOT NULL,
    checks       TEXT    NOT NULL  -- names of the checks that did not pass
) WITHOUT ROWID;

-- These triggers keep ledger rows from being changed or deleted. INSERT has its own
-- triggers, because REPLACE deletes rows without firing DELETE triggers.
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

-- Fee rule sets. Each row is an activation. The greatest version is in force.
-- Rows never change.
CREATE TABLE fee_rule_set (
    version      INTEGER NOT NULL PRIMARY KEY,
    digest       TEXT    NOT NULL, -- SHA-256 of rules
    rules        TEXT    NOT NULL, -- JSON in canonical form
    source       TEXT    NOT NULL, -- built-in, a file or an address; or the version that a rollback repeats
    mark         TEXT    NOT NULL, -- ETag or similar value that changes with the source
    activated_at INTEGER NOT NULL,
    activated_by TEXT    NOT NULL,
    seal_version INTEGER NOT NULL, -- version of the bytes under the MAC
    key_id       TEXT    NOT NULL,
    previous_mac BLOB    NOT NULL, -- MAC of the previous version; zeros: start of the chain
    mac          BLOB    NOT NULL  -- covers the whole row; digest stands for rules
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
