// Verifies webhooks with WebCrypto, as Standard Webhooks specifies.

const tolerance = 5 * 60; // seconds

function decode(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/**
 * Throws unless the message was signed with one of the secrets within the last five minutes. body is the body as
 * received. During a rotation pass both secrets. The server may repeat a message: ignore a webhook-id that you have seen.
 */
export async function verifyWebhook(
  headers: Headers | Record<string, string | string[] | undefined>,
  body: string | Uint8Array,
  secrets: string | string[],
  now: Date = new Date(),
): Promise<void> {
  const header = (name: string) => (headers instanceof Headers ? headers.get(name) : headers[name]?.toString()) ?? "";
  const sent = header("webhook-timestamp");
  if (!/^\d{1,12}$/.test(sent)) throw new Error(`the header webhook-timestamp is "${sent}", want seconds since 1970`);
  if (Math.abs(now.getTime() / 1000 - Number(sent)) > tolerance) {
    throw new Error("the webhook was sent more than five minutes from now: check the clock");
  }
  const text = new TextEncoder();
  const start = text.encode(`${header("webhook-id")}.${sent}.`);
  const rest = typeof body === "string" ? text.encode(body) : body;
  const message = new Uint8Array(start.length + rest.length);
  message.set(start);
  message.set(rest, start.length);
  for (const secret of [secrets].flat()) {
    const raw = decode(secret.replace(/^whsec_/, ""));
    if (!raw?.length) throw new Error("a webhook secret is not valid: it begins with whsec_");
    const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of header("webhook-signature").split(" ")) {
      const [version, encoded = ""] = signature.split(",", 2);
      const mac = version === "v1" ? decode(encoded) : undefined;
      if (mac && (await crypto.subtle.verify("HMAC", key, mac, message))) return; // in constant time
    }
  }
  throw new Error("no signature of the webhook matches: check the secret");
}
