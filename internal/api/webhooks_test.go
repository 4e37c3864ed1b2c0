package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"assay/internal/money"
	"assay/internal/view"
)

func TestWebhooks_ShowTheirSecretOnce(t *testing.T) {
	h := newHarness(t, nil)
	created := h.request("POST", "/api/webhooks", `{"url":"`+deadHook+`","format":"slack","events":["job.failed"],"items":["`+redline+`"],"users":["u1"],"minChange":0.125}`, asAdmin)
	var made view.NewWebhook
	h.must(json.Unmarshal([]byte(created.body), &made))
	path := "/api/webhooks/" + made.ID
	if created.StatusCode != http.StatusCreated || created.Header.Get("Location") != path || !strings.HasPrefix(made.Secret, "whsec_") || made.State != "healthy" {
		t.Fatalf("new webhook: got %d %s, want 201 with a secret", created.StatusCode, created.body)
	}
	rotated := h.request("POST", path+"/rotate", "", asAdmin)
	var next view.NewWebhook
	h.must(json.Unmarshal([]byte(rotated.body), &next))
	if next.Secret == made.Secret || next.OldSecretUntil == nil || next.OldSecretUntil.Sub(h.clock.Now()).Hours() != 24 {
		t.Errorf("got %s after a rotation, want a new secret and 24 hours for the older one", rotated.body)
	}
	h.request("POST", path+"/test", "", asAdmin)
	for _, path := range []string{path, "/api/webhooks", path + "/deliveries"} {
		got := h.request("GET", path, "", asAdmin)
		if strings.Contains(got.body, "whsec_") || got.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d %s, want no secret", path, got.StatusCode, got.body)
		}
	}
	if strings.Contains(h.log.String(), "whsec_") {
		t.Error("the log contains a secret")
	}
	got := h.request("PATCH", path, `{"events":["job.failed","price.alert"],"alert":{"change":0.1,"below":5.5}}`, asAdmin)
	var changed view.Webhook
	h.must(json.Unmarshal([]byte(got.body), &changed))
	if changed.Alert == nil || *changed.Alert != (view.WebhookAlert{Change: money.Scale / 10, Hours: 24, Below: 11 * money.Scale / 2}) {
		t.Errorf("got %s, want the webhook with its alert", got.body)
	}
	got = h.request("PATCH", path, `{"enabled":false,"events":["job.failed"],"items":[],"alert":null}`, asAdmin)
	h.must(json.Unmarshal([]byte(got.body), &changed))
	if changed.State != "disabled" || changed.Alert != nil || changed.DisabledReason != "operator" || len(changed.Items) != 0 || changed.Users[0] != "u1" || changed.MinChange != made.MinChange {
		t.Errorf("got %s, want the webhook with its changes", got.body)
	}
}

func TestWebhooks_RefuseWrongSettings(t *testing.T) {
	h := newHarness(t, nil)
	many := `["x"` + strings.Repeat(`,"x"`, 20) + `]`
	for body, pointers := range map[string][]string{
		`{}`:                                {"/url"},
		`{"url":"http://example.com/"}`:     {"/url"},
		`{"url":"https://127.0.0.1:8443/"}`: {"/url"},
		`{"url":"https://localhost/"}`:      {"/url"},
		`{"url":"` + deadHook + `","events":["price.alert"]}`:                                     {"/alert"},
		`{"url":"` + deadHook + `","events":["price.alert"],"alert":null}`:                        {"/alert"},
		`{"url":"` + deadHook + `","events":["job.failed"],"alert":{"above":5}}`:                  {"/events"},
		`{"url":"` + deadHook + `","events":["price.changed","price.alert"],"alert":{"above":5}}`: {"/events"},
		`{"url":"","format":"xml","events":["job.ended"],"minChange":-1}`:                         {"/url", "/format", "/events/0", "/minChange"},
		`{"url":"` + deadHook + `","users":` + many + `}`:                                         {"/users/20"},
		`{"url":"` + deadHook + `","items":[""],"enabled":true}`:                                  {"/items/0", "/enabled"},
		`{"url":"` + deadHook + `","minChange":"0.1","secret":"whsec_AAAA"}`:                      {"/minChange", "/secret"},
		`{"url":"` + deadHook + `","alert":{"hours":721,"change":-1}}`:                            {"/alert/hours", "/alert/change"},
		`{"url":"` + deadHook + `","alert":{}}`:                                                   {"/alert"},
	} {
		p := h.wantProblem(http.StatusBadRequest, "invalid_body", h.request("POST", "/api/webhooks", body, asAdmin))
		var got []string
		for _, field := range p.Errors {
			got = append(got, field.Pointer)
		}
		if !slices.Equal(got, pointers) {
			t.Errorf("%s: got pointers %v, want %v", body, got, pointers)
		}
	}
	h.wantProblem(http.StatusBadRequest, "invalid_body", h.request("PATCH", "/api/webhooks/1", `{"events":["price.alert"]}`, asAdmin))
	set := `{"events":["price.alert"],"alert":{"change":0.1}}`
	if got := h.request("PATCH", "/api/webhooks/1", set, asAdmin); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `"events":["price.alert"]`) {
		t.Errorf("%s: got %d %s, want the webhook with its alert", set, got.StatusCode, got.body)
	}
	p := h.wantProblem(http.StatusBadRequest, "invalid_body", h.request("PATCH", "/api/webhooks/1", `{"alert":null}`, asAdmin))
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "/alert" || !strings.Contains(p.Errors[0].Detail, "price.alert") {
		t.Errorf("alert null: got the errors %v, want one at /alert that names price.alert", p.Errors)
	}
	h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("POST", "/api/webhooks/1/rotate?keepHours=721", "", asAdmin))
	h.wantProblem(http.StatusBadRequest, "invalid_body", h.request("PATCH", "/api/webhooks/1", `{"format":"slack"}`, asAdmin))
	h.exec(`UPDATE webhook_delivery SET number = 1, first = 1`)
	h.wantProblem(http.StatusNotFound, "event_not_found", h.request("POST", "/api/webhooks/1/deliveries/1/resend", "", asAdmin))
	for range 99 {
		h.request("POST", "/api/webhooks", `{"url":"`+deadHook+`"}`, asAdmin)
	}
	h.wantProblem(http.StatusConflict, "too_many_webhooks", h.request("POST", "/api/webhooks", `{"url":"`+deadHook+`"}`, asAdmin))
}

func TestWebhooks_ListDeliveriesInPages(t *testing.T) {
	h := newHarness(t, nil)
	h.exec(`INSERT INTO webhook_delivery SELECT 1, number + 1, number + 1, kind, 'delivered', 1, 204, 500, '', at FROM webhook_delivery`)
	first := h.request("GET", "/api/webhooks/1/deliveries?limit=1", "", asAdmin)
	var page view.Page[view.WebhookDelivery]
	h.must(json.Unmarshal([]byte(first.body), &page))
	if len(page.Items) != 1 || page.Items[0].State != "delivered" || page.NextCursor == nil {
		t.Fatalf("first page: got %s, want one delivery with state delivered and a cursor", first.body)
	}
	second := h.request("GET", "/api/webhooks/1/deliveries?limit=1&cursor="+*page.NextCursor, "", asAdmin)
	h.must(json.Unmarshal([]byte(second.body), &page))
	if page.Items[0].Number != sampleDelivery || page.Items[0].State != "failed" || page.NextCursor != nil {
		t.Errorf("second page: got %s, want the other delivery", second.body)
	}
	resent := h.request("POST", "/api/webhooks/1/deliveries/"+sampleDelivery+"/resend", "", asAdmin)
	if !strings.Contains(resent.body, `"delivered":false,"status":0,`) || !strings.Contains(resent.body, `"error":"connection failed"`) {
		t.Errorf("re-sent delivery: got %s, want the outcome of the attempt", resent.body)
	}
	h.exec(`UPDATE webhook SET filter = '{"events":["job.failed"]}'`)
	h.wantProblem(http.StatusConflict, "event_filtered", h.request("POST", "/api/webhooks/1/deliveries/"+sampleDelivery+"/resend", "", asAdmin))
}
