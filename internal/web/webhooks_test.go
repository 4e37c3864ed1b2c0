package web

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// webhookFields returns the form fields of a new webhook that sends to the test receiver.
func (w *world) webhookFields(more ...string) []string {
	return append([]string{"url", w.receiver.URL + "/hook", "format", "standard", "back", "/webhooks"}, more...)
}

func TestWebhooks_CreatedChangedTestedAndDeleted(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	mustContain(t, v.get("/webhooks").body, "There are no webhooks.")
	v.post("/webhooks", w.webhookFields("event", "price.alert", "items", "AK-47 | Redline (Field-Tested)\r\n\r\nMann Co. Key\r\n", "minChange", "12.5", "alertChange", "5", "alertAbove", "9.99")...)
	body := v.get("/webhooks").body
	mustContain(t, body, "Webhook 1 is created.", "whsec_", w.receiver.URL+"/hook", "Healthy", "price alerts", "2 items")
	if again := v.get("/webhooks").body; strings.Contains(again, "whsec_") {
		t.Error("the second page shows the secret again, want it only on the first page")
	}
	mustContain(t, v.get("/webhooks/1").body, `value="12.5"`, `value="5"`, `value="24"`, `value="9.99"`, "Mann Co. Key", `value="price.alert" checked`, "Nothing was sent yet")

	v.post("/webhooks/1/test", "back", "/webhooks/1")
	mustContain(t, v.get("/webhooks/1").body, "The test message was accepted in", "(status 200)")
	w.refuse.Store(true)
	v.post("/webhooks/1/test", "back", "/webhooks/1")
	mustContain(t, v.get("/webhooks/1").body, "The test message was not accepted:", "503")

	v.post("/webhooks/1", w.webhookFields("items", "", "minChange", "")...)
	mustContain(t, v.get("/webhooks").body, "The webhook is saved.", ">all")
	v.post("/webhooks/1/disable", "back", "/webhooks/1")
	mustContain(t, v.get("/webhooks/1").body, "The webhook is disabled.", "Disabled: operator", ">Enable<")
	v.post("/webhooks/1/enable", "back", "/webhooks/1")
	mustContain(t, v.get("/webhooks/1").body, "The webhook is enabled.", "Healthy")
	v.post("/webhooks/1/rotate", "back", "/webhooks/1")
	mustContain(t, v.get("/webhooks/1").body, "This is the new secret.", "whsec_", "Old secret ends")

	mustContain(t, v.post("/webhooks/1/delete", "back", "/webhooks").body, "Delete webhook 1?")
	mustContain(t, v.get("/webhooks").body, w.receiver.URL+"/hook")
	v.post("/webhooks/1/delete", "back", "/webhooks", "confirmed", "1")
	mustContain(t, v.get("/webhooks").body, "Webhook 1 is deleted.", "There are no webhooks.")
	if got := v.get("/webhooks/1").StatusCode; got != http.StatusNotFound {
		t.Errorf("got status %d for a deleted webhook, want 404", got)
	}
}

func TestWebhooks_DeliveriesAreListedAndSentAgain(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	v.post("/webhooks", w.webhookFields()...)
	for number := range deliveriesPerPage + 2 {
		w.exec(`INSERT INTO webhook_delivery (webhook_id, number, first, kind, state, attempts, status, duration, error, at) VALUES (1, $1, $1, 'job.finished', 'failed', 20, 503, 12000, 'out of order', $2)`,
			number+1, w.clock.Now().UnixMicro())
	}
	body := v.get("/webhooks/1").body
	mustContain(t, body, "job.finished", "503", "12 ms", "out of order", "Send message 52 again")
	if strings.Contains(body, "Send message 2 again") {
		t.Error("the first page has message 2, want only the newest messages")
	}
	next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(body)
	if next == nil {
		t.Fatal("the first page has no link to the next page, want one")
	}
	mustContain(t, v.get(strings.ReplaceAll(next[1], "&amp;", "&")).body, "Send message 2 again", "First page")
	v.post("/webhooks/1/deliveries/777/resend", "back", "/webhooks/1")
	mustContain(t, v.get("/webhooks/1").body, "This webhook has no such delivery.")
}

func TestWebhooks_ExplainInvalidForms(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	v.post("/webhooks", w.webhookFields()...)
	v.get("/webhooks")
	before := w.version()
	for message, fields := range map[string][]string{
		"Enter an address":              {"url", "", "format", "standard"},
		"The url must begin with https": {"url", "http://example.com/x", "format", "standard"},
		"Choose one of the formats":     {"url", "https://example.com/x", "format", "fax"},
		"Choose events from the list":   w.webhookFields("event", "nothing"),
		"Enter a limit for price.alert": w.webhookFields("event", "price.alert"),
		"choose price.alert and not":    w.webhookFields("event", "price.changed", "alertAbove", "5"),
		"percentage from 0":             w.webhookFields("minChange", "-1"),
		"at most 200 item names":        w.webhookFields("items", strings.Repeat("x\n", 201)),
		"at most 20 users":              w.webhookFields("users", strings.Repeat("x\n", 21)),
		"A price must be a decimal":     w.webhookFields("alertBelow", "free"),
		"The hours must be a whole":     w.webhookFields("alertChange", "5", "alertHours", "721"),
	} {
		for _, target := range []string{"/webhooks", "/webhooks/1"} {
			if target != "/webhooks" && fields[3] == "fax" {
				continue // the format of a webhook cannot change
			}
			res := v.post(target, append(fields, "back", "/webhooks")...)
			mustContain(t, res.body, `<p class="error" id="problem" role="alert">`, message)
			if res.StatusCode != http.StatusBadRequest {
				t.Errorf("%s %q: got status %d, want 400", target, fields, res.StatusCode)
			}
		}
	}
	if w.version() != before {
		t.Error("a refused form changed the database, want no change")
	}
}

func TestWebhooks_RefusedFormsKeepTheirEntries(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	v.post("/webhooks", w.webhookFields("items", "stored name")...)
	v.get("/webhooks")
	fields := []string{
		"url", "http://example.com/entered", "format", "slack", "event", "price.alert", "items", "Mann Co. Key", "users", "anna",
		"minChange", "12.50", "alertChange", "five", "alertHours", "36", "alertAbove", "9.990", "alertBelow", "0",
	}
	for _, target := range []string{"/webhooks", "/webhooks/1"} {
		body := v.post(target, fields...).body
		mustContain(t, body, `value="http://example.com/entered"`, `value="price.alert" checked`, ">Mann Co. Key</textarea>", ">anna</textarea>",
			`value="12.50"`, `value="five"`, `value="36"`, `value="9.990"`, `name="alertBelow" inputmode="decimal" maxlength="32" size="8" value="0"`, `action="`+target+`"`)
		if strings.Contains(body, "stored name") || strings.Count(body, " checked") != 1 {
			t.Errorf("%s: the refused form has other entries, want those that were sent", target)
		}
	}
	mustContain(t, v.post("/webhooks", fields...).body, "<option selected>slack")
	mustContain(t, v.get("/webhooks/1").body, "stored name")
}

func TestForms_KeepEntriesButNoSecret(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	for target, c := range map[string]struct{ fields, wants []string }{
		"/keys":      {[]string{"name", "Faulty Name", "scope", "prices:read", "perMinute", "77", "days", "9"}, []string{`value="Faulty Name"`, `value="prices:read" checked`, `value="77"`, `value="9"`}},
		"/operators": {[]string{"name", "Faulty Name", "role", "admin", "password", "correct horse battery"}, []string{`value="Faulty Name"`, `value="admin" selected`}},
	} {
		res := v.post(target, append(c.fields, "back", target)...)
		mustContain(t, res.body, append(c.wants, `id="problem"`)...)
		if res.StatusCode != http.StatusBadRequest || strings.Contains(res.body, "correct horse") {
			t.Errorf("%s: got status %d, want 400 and a page without the password", target, res.StatusCode)
		}
	}
}

func TestSettings_ShowValuesWithTheirOrigin(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	body := v.get("/settings").body
	mustContain(t, body, "MARKET_<wbr>PRICE_<wbr>TTL", "6h", "default", "MARKET_<wbr>PRICE_<wbr>SYNC_<wbr>SECRET")
	for _, secret := range []string{marketSecret, adminToken, "platform-token-of-the-tests"} {
		if strings.Contains(body, secret) {
			t.Errorf("the page shows the secret %q, want no secret", secret)
		}
	}
	changed := v.get("/settings?changed=1&name=data").body
	mustContain(t, changed, "DATA_<wbr>DIR", "environment")
	if strings.Contains(changed, "PRICE_<wbr>TTL") {
		t.Error("the filtered page shows MARKET_PRICE_TTL, which has its default, want only changed settings")
	}
	mustContain(t, v.get("/settings?name=nope").body, "No setting matches the filter.")
	if got := w.visit(t, marketSecret).get("/settings").StatusCode; got != http.StatusForbidden {
		t.Errorf("got status %d for a read-only session, want 403", got)
	}
}
