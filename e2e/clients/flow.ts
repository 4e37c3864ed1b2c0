// Walks through the API of a running server with types that openapi-typescript makes of the server's own OpenAPI document: the tests put
// schema.d.ts beside this file. It reads from standard input where the server is and what prices to expect, and throws at the first surprise.
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const task: { URL: string; Token: string; Prices: Record<string, string> } = JSON.parse(readFileSync(0, "utf8"));
const api = createClient<paths>({ baseUrl: task.URL, headers: { Authorization: `Bearer ${task.Token}` } });
const names = Object.keys(task.Prices);

function must<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}
function check(what: string, ok: boolean, got: unknown): void {
  if (!ok) throw new Error(`${what}: ${JSON.stringify(got)}`);
}

const ledger = "/api/functions/admin/wallet-ledger/{userId}";
const userId = "ts-buyer";
const buyer = { path: { userId } };

const push = { appId: 730, contextId: "2", snapshotAt: new Date().toISOString(), items: [{ assetId: "1", marketHashName: names[0]! }] };
const synced = must(await api.POST("/api/inventory/{userId}/sync", { params: { path: { userId: "ts-seller" } }, body: push }));
check("a push", synced.added === 1, synced);

const forecast = must(await api.POST("/api/market-prices/refresh", { params: { query: { dryRun: "1" } } }));
if (!("reason" in forecast) || forecast.reason !== "dry_run") throw new Error(JSON.stringify(forecast));
check("a dry run", forecast.totalItems === names.length, forecast);
const started = must(await api.POST("/api/market-prices/refresh", {}));
check("a refresh", started.started, started);
while (must(await api.GET("/api/market-prices/status")).status.running) await new Promise((wake) => setTimeout(wake, 20));

for (let at = 0; at < names.length; at += 1000) {
  const items = names.slice(at, at + 1000).map((marketHashName) => ({ marketHashName }));
  for (const item of must(await api.POST("/api/prices/lookup", { body: { items } })).items) {
    const want = task.Prices[item.marketHashName];
    check(`digits of ${item.marketHashName}, want ${want}`, String(item.currentPrice) === want && item.currentPriceDecimal === want, item);
  }
}
const explained = must(await api.GET("/api/prices/items/{name}", { params: { path: { name: "-" }, query: { name: names[0] } } }));
check("an explanation", explained.currentPriceDecimal === task.Prices[names[0]!] && explained.snapshots.length === 1, explained);
must(await api.GET("/api/prices/items", {}));

must(await api.PUT("/api/users/{userId}", { params: buyer, body: { displayName: "TypeScript" } }));
const deposit = { kind: "deposit", currency: "USD", amount: 10000 } as const;
must(await api.POST(`${ledger}/entries`, { params: { ...buyer, header: { "Idempotency-Key": "ts-deposit" } }, body: deposit }));
const quote = must(await api.POST("/api/functions/admin/payment-fee-rules/quote", { body: { kind: "sale", amount: 2725, currency: "USD" } }));
const offer = { userId: "ts-seller", appId: 730, contextId: "2", assetId: "1", price: 2725, currency: "USD" };
const { listing } = must(await api.POST("/api/listings", { body: offer }));
check("the listing", listing.state === "active", listing);
const refused = await api.POST("/api/listings", { body: offer });
check("a second listing", refused.error?.code === "already_listed", refused.error);
const purchase = { params: { path: { id: listing.id }, header: { "Idempotency-Key": "ts-buy" } }, body: { buyerId: userId } };
const trade = must(await api.POST("/api/listings/{id}/purchase", purchase));
check("the purchase", trade.fee === quote.fee && trade.net === 2725 - quote.fee, trade);
const completed = must(await api.POST("/api/trades/{id}/complete", { params: { path: { id: trade.id } } }));
check("the trade", completed.state === "completed", completed);
const wallet = must(await api.GET(`${ledger}/balance`, { params: buyer }));
check("the balance", wallet.accounts[0]?.balance === 10000 - 2725, wallet);
check("the entries", must(await api.GET(`${ledger}/entries`, { params: buyer })).items.length >= 2, userId);
const report = must(await api.GET(`${ledger}/verify`, { params: buyer }));
check("the verification", report.ok && report.status === "ok", report);
check("a refused deletion", (await api.DELETE("/api/users/{userId}", { params: buyer })).error?.code === "user_has_trades", userId);
const gone = { path: { userId: "ts-gone" } };
must(await api.PUT("/api/users/{userId}", { params: gone, body: {} }));
check("a deletion", (await api.DELETE("/api/users/{userId}", { params: gone })).response.status === 204, gone);
check("a deleted user", (await api.GET("/api/users/{userId}", { params: gone })).error?.code === "user_not_found", gone);
console.log(`${names.length} prices are the same to the digit`);
