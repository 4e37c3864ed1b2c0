// Runs one task of the end-to-end test with the client. It reads the task from standard input and writes JSON values
// to standard output, as client/go/internal/flow does.
import { readFileSync, writeSync } from "node:fs";
import { connect, data, follow, pages, verifyWebhook } from "./index.js";

type Task = { Do: string; URL: string; Token: string; Since: number; Fields: string; Listing: string; Header: Record<string, string>; Body: string; Secrets: string[]; Timeout: number };
const task: Task = JSON.parse(readFileSync(0, "utf8"));
const api = connect(task.URL, { token: task.Token, timeout: task.Timeout || undefined });
const print = (value: unknown) => writeSync(1, JSON.stringify(value) + "\n");

switch (task.Do) {
  case "list":
    for await (const item of pages(async (cursor) => data(await api.GET("/api/prices/items", { params: { query: { cursor, limit: 70 } } })))) print(item);
    break;
  case "follow":
    for await (const batch of follow(api, String(task.Since), { fields: task.Fields })) {
      if (!batch.error) print({ reset: batch.reset, prices: batch.prices, cursor: Number(batch.cursor) });
    }
    break;
  case "buy": {
    const params = { path: { id: task.Listing }, header: { "Idempotency-Key": "" } };
    print(data(await api.POST("/api/listings/{id}/purchase", { params, body: { buyerId: "buyer" } })));
    break;
  }
  default: {
    const verified = verifyWebhook(task.Header, task.Body, task.Secrets);
    print(await verified.then(() => true, () => false));
  }
}
