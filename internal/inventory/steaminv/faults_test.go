package steaminv_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"assay/internal/fault"
	"assay/internal/inventory/steaminv"
	"assay/internal/inventory/steaminv/steaminvtest"
	"assay/internal/provider/providertest"
)

func TestPull_ReturnsAFaultForEachOutcome(t *testing.T) {
	const html = "<!DOCTYPE html><html><body>Access Denied</body></html>"
	reply := func(status int, body string) map[int]steaminvtest.Reply {
		return map[int]steaminvtest.Reply{1: {Status: status, Body: body}}
	}
	page := func(rest string) map[int]steaminvtest.Reply { return reply(200, `{"success":1,`+rest+`}`) }
	const one = `"assets":[{"appid":730,"contextid":"2","assetid":"1","classid":"1","amount":"1"}],"descriptions":[{"classid":"1","market_hash_name":"A","marketable":1}]`
	for name, c := range map[string]struct {
		script   map[int]steaminvtest.Reply
		code     string
		kind     fault.Kind
		requests int
		after    time.Duration
	}{
		"private":                {reply(403, "null"), "inventory_private", fault.Conflict, 1, 0},
		"private, empty body":    {reply(403, ""), "inventory_private", fault.Conflict, 1, 0},
		"unauthorised":           {reply(401, "null"), "inventory_private", fault.Conflict, 1, 0},
		"hidden":                 {page(`"total_inventory_count":12`), "inventory_hidden", fault.Conflict, 1, 0},
		"hidden, empty list":     {page(`"total_inventory_count":12,"assets":[],"descriptions":[]`), "inventory_hidden", fault.Conflict, 1, 0},
		"throttled":              {reply(429, "null"), "steam_throttled", fault.Unavailable, 1, 10 * time.Minute},
		"throttled by HTML":      {reply(403, html), "steam_throttled", fault.Unavailable, 1, 10 * time.Minute},
		"too large":              {page(`"total_inventory_count":50001,` + one), "inventory_too_large", fault.Unprocessable, 1, 0},
		"final 500":              {reply(500, steaminvtest.Final), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"unknown 500":            {reply(500, `{"error":"EYldRefreshAppIfNecessary failed with EResult 15"}`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"repeated 400":           {map[int]steaminvtest.Reply{1: {Status: 400, Body: "null"}, 2: {Status: 400, Body: "null"}}, "inventory_unavailable", fault.Unavailable, 2, 30 * time.Second},
		"HTML":                   {reply(200, html), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"null":                   {reply(200, "null"), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"empty body":             {reply(200, ""), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"a list":                 {reply(200, "[]"), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"no success":             {reply(200, `{"total_inventory_count":0}`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"failure":                {reply(200, `{"success":false,"total_inventory_count":0}`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"no count":               {reply(200, `{"success":1}`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"more assets than total": {page(`"total_inventory_count":0,` + one), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"no last_assetid":        {page(`"total_inventory_count":2,"more_items":1,` + one), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"another inventory":      {page(`"total_inventory_count":1,` + strings.Replace(one, "730", "570", 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"another context":        {page(`"total_inventory_count":1,` + strings.Replace(one, `"2"`, `"6"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"no description":         {page(`"total_inventory_count":1,` + strings.Replace(one, `[{"classid":"1"`, `[{"classid":"2"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"invalid id":             {page(`"total_inventory_count":1,` + strings.Replace(one, `"assetid":"1"`, `"assetid":"1.5"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"amount of 0":            {page(`"total_inventory_count":1,` + strings.Replace(one, `"amount":"1"`, `"amount":"0"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"invalid flag":           {page(`"total_inventory_count":1,` + strings.Replace(one, `"marketable":1`, `"marketable":2`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"name with NUL":          {page(`"total_inventory_count":1,` + strings.Replace(one, `"A"`, `"\u0000"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"name of 513 bytes":      {page(`"total_inventory_count":1,` + strings.Replace(one, `"A"`, `"`+strings.Repeat("a", 513)+`"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"assets of wrong type":   {page(`"total_inventory_count":1,"assets":"none"`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"assets twice":           {page(`"total_inventory_count":1,` + one + `,"assets":[]`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"duplicate member":       {page(`"total_inventory_count":1,` + strings.Replace(one, `"assetid":"1"`, `"assetid":"1","assetid":"2"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"two documents":          {reply(200, steaminvtest.Empty+steaminvtest.Empty), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"number out of range":    {page(`"total_inventory_count":1e400`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSteam(t, &steaminvtest.Server{Inventories: owned(), Script: c.script})
			push, err := s.pull(t)
			f := fault.Of(err)
			if f == nil || f.Code != c.code || f.Kind != c.kind {
				t.Fatalf("got error %v, want %s", err, c.code)
			}
			if f.RetryAfter.Round(time.Second) != c.after {
				t.Errorf("got Retry-After %v, want %v", f.RetryAfter, c.after)
			}
			if n := len(s.Paths()); n != c.requests || push.Assets != nil {
				t.Errorf("got %d requests and %d assets, want %d and 0", n, len(push.Assets), c.requests)
			}
		})
	}
}

func TestPull_RetriesTemporaryErrors(t *testing.T) {
	for _, body := range []string{
		steaminvtest.Transient, "", "null", `{"error":"x (2)"}`, `{"error":"x (10)"}`, `{"error":"x (16)"}`, `{"error":"x (29)"}`, `{"error":"x (38)"}`,
		`{"error":"Timeout"}`, `{"error":"batched request timeout 3"}`, `{"error":"Failed to get it"}`, `{"error":"Failed to send it"}`,
	} {
		s := newSteam(t, &steaminvtest.Server{
			Inventories: owned(items(15)...), PageSize: 10, Script: map[int]steaminvtest.Reply{2: {Status: 500, Body: body}, 3: {Status: 502, Body: "<html>"}},
		})
		if push, err := s.pull(t); err != nil || len(push.Assets) != 15 || len(s.Paths()) != 4 {
			t.Errorf("%s: got %d assets, %d requests, error %v, want 15 assets after 4 requests", body, len(push.Assets), len(s.Paths()), err)
		}
	}
}

func TestPull_DetectsRepeatedPages(t *testing.T) {
	page := func(ids ...string) steaminvtest.Reply {
		var assets []string
		for _, id := range ids {
			assets = append(assets, `{"assetid":"`+id+`","classid":"1"}`)
		}
		return steaminvtest.Reply{Body: `{"assets":[` + strings.Join(assets, ",") + `],"descriptions":[{"classid":"1","market_hash_name":"A","marketable":1}],` +
			`"more_items":1,"last_assetid":"` + ids[len(ids)-1] + `","total_inventory_count":9,"success":1}`}
	}
	s := newSteam(t, &steaminvtest.Server{Script: map[int]steaminvtest.Reply{1: page("1", "2"), 2: page("3"), 3: page("1", "2"), 4: page("3")}})
	if _, err := s.pull(t); code(err) != "inventory_unavailable" || len(s.Paths()) != 3 {
		t.Errorf("got error %v after %d requests, want inventory_unavailable after 3", err, len(s.Paths()))
	}
	changed := page("2")
	changed.Body = strings.Replace(changed.Body, ":9", ":8", 1)
	s = newSteam(t, &steaminvtest.Server{Script: map[int]steaminvtest.Reply{1: page("1"), 2: changed}})
	if _, err := s.pull(t); code(err) != "inventory_unavailable" || len(s.Paths()) != 2 {
		t.Errorf("changed total: got error %v after %d requests, want inventory_unavailable after 2", err, len(s.Paths()))
	}
}

func TestPull_SendsNoRequestsDuringABlock(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(30)...), PageSize: 10, Script: map[int]steaminvtest.Reply{2: {Status: 429, Body: "null"}}})
	for range 3 {
		push, err := s.pull(t)
		if f := fault.Of(err); f == nil || f.Code != "steam_throttled" || f.RetryAfter < 9*time.Minute || push.Assets != nil {
			t.Errorf("got %d assets, error %v, want steam_throttled", len(push.Assets), err)
		}
	}
	if n := len(s.Paths()); n != 2 {
		t.Errorf("got %d requests, want 2: none during the block", n)
	}
}

func TestPull_RetriesTransportFaults(t *testing.T) {
	for _, c := range []struct {
		fault  providertest.Fault
		always string // code of the error if all requests fail
	}{
		{providertest.Reset(), "inventory_unavailable"},
		{providertest.CutBody(), "inventory_unavailable"},
		{providertest.CutChunks(), "inventory_unavailable"},
		{providertest.CutGzip(), "inventory_unavailable"},
		{providertest.Status(http.StatusBadGateway), "inventory_unavailable"},
		{providertest.Status(http.StatusServiceUnavailable), "inventory_unavailable"},
	} {
		t.Run(c.fault.Name, func(t *testing.T) {
			s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(30)...), PageSize: 10})
			s.faults.Next(c.fault)
			if push, err := s.pull(t); err != nil || len(push.Assets) != 30 {
				t.Errorf("one fault: got %d assets, error %v, want 30", len(push.Assets), err)
			}
			s.faults.Always(c.fault)
			if push, err := s.pull(t); code(err) != c.always || push.Assets != nil {
				t.Errorf("permanent fault: got %d assets, error %v, want %s", len(push.Assets), err, c.always)
			}
		})
	}
	t.Run("garbage", func(t *testing.T) {
		s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(3)...)})
		s.faults.Always(providertest.Garbage())
		if _, err := s.pull(t); code(err) != "inventory_unavailable" {
			t.Error(err)
		}
	})
	t.Run("redirect to a private address", func(t *testing.T) {
		s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(3)...)})
		s.faults.Always(providertest.Redirect("http://169.254.169.254/latest/meta-data/"))
		if _, err := s.pull(t); code(err) != "inventory_unavailable" {
			t.Error(err)
		}
	})
	t.Run("connection refused", func(t *testing.T) {
		s := newSteam(t, &steaminvtest.Server{})
		s.puller.BaseURL = providertest.Refused(t)
		if _, err := s.pull(t); code(err) != "inventory_unavailable" {
			t.Error(err)
		}
	})
}

func TestPull_StopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(30)...), PageSize: 10})
	s.Arrived = func(n int, r *http.Request) {
		if n == 2 {
			cancel()
			<-r.Context().Done()
		}
	}
	if _, err := s.puller.Pull(ctx, someone, steaminv.Default()); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}
