package web

import (
	"encoding/csv"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"assay/internal/admission"
	"assay/internal/catalog"
)

// hold gives twelve items a held price.
func (w *world) hold() {
	w.exec(`UPDATE item SET candidate = price * 3, candidate_at = 1 WHERE name LIKE 'Sticker | Team 0%' OR name IN ($1, $2)`, redline, "Line one\nline two")
}

// selection returns the values of the checkboxes of a page.
func selection(body string) (values []string) {
	for _, found := range regexp.MustCompile(`name="item" value="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		values = append(values, html.UnescapeString(found[1]))
	}
	return values
}

// choose sends a form with a selection.
func (v *visitor) choose(target string, items []string, fields ...string) reply {
	v.t.Helper()
	values := url.Values{"csrf": {v.csrf}, "back": {"/held"}, "item": items}
	for i := 0; i+1 < len(fields); i += 2 {
		values.Set(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.send(r)
}

func TestHeld_AcceptsSelectedPrices(t *testing.T) {
	w := newWorld(t)
	w.hold()
	v := w.visit(t, adminToken)
	body := v.get("/held").body
	mustContain(t, body, "Accept all 13", "&#43;200.00 %", "$32.38", "$97.14", "times", "The limit is 2.")
	items := selection(body)
	if len(items) != 13 {
		t.Fatalf("got %d checkboxes, want 13", len(items))
	}
	const held = `SELECT count(*) FROM item WHERE candidate > 0`
	mustContain(t, v.choose("/items/accept", items[:4]).body, "Accept 4 held prices of 4 selected items?", `name="confirmed"`)
	if got := w.read(held); got != "13" {
		t.Errorf("got %s held prices before the confirmation, want 13", got)
	}
	others := append(slices.Clone(items[:4]), itemQuery(catalog.Key{AppID: catalog.CS2, Name: graffiti}))
	mustContain(t, v.choose("/items/accept", others).body, "Accept 4 held prices of 5 selected items?", "Accept 4 prices")
	before := w.version()
	for _, confirmed := range []string{"", "1"} {
		v.choose("/items/accept", others[4:], "confirmed", confirmed)
		mustContain(t, v.get("/held").body, "No selected item has a held price. Nothing was accepted.")
	}
	if w.version() != before {
		t.Error("an acceptance of items without held prices changed the database, want no change")
	}
	if res := v.choose("/items/accept", others, "confirmed", "1"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("got status %d, want a redirect", res.StatusCode)
	}
	mustContain(t, v.get("/held").body, "4 held prices are accepted. 1 selected item has no held price.", "Accept all 9")

	mustContain(t, v.post("/held/accept", "back", "/held").body, "Accept 9 held prices?", "Accept 9 prices")
	v.post("/held/accept", "back", "/held", "confirmed", "1")
	mustContain(t, v.get("/held").body, "9 held prices are accepted.", "No price is held")
	if got := w.read(held); got != "0" {
		t.Errorf("got %s held prices, want none", got)
	}
	v.post("/held/accept", "back", "/held")
	mustContain(t, v.get("/held").body, "No price is held.")
	mustContain(t, v.get("/audit").body, "/items/accept?items=5&amp;item=appId=730&amp;name=", "| ")
}

// Other pages wait for the same slot, so it must stay free while hundreds of prices are written.
func TestHeld_AcceptingAllTakesNoSlot(t *testing.T) {
	w := newWorld(t)
	w.hold()
	v := w.visit(t, adminToken)
	leave, err := w.gate.Enter(t.Context(), admission.List)
	must(t, err)
	v.post("/held/accept", "back", "/held", "confirmed", "1")
	leave()
	mustContain(t, v.get("/held").body, "13 held prices are accepted.", "No price is held")
}

func TestHeld_PartialFailureNamesTheAcceptedPrices(t *testing.T) {
	w := newWorld(t)
	w.exec(`UPDATE item SET candidate = price * 3, candidate_at = 1 WHERE price > 0`)
	w.exec(`CREATE TRIGGER full BEFORE UPDATE ON item WHEN old.id = (SELECT max(id) FROM item WHERE price > 0) BEGIN SELECT raise(ABORT, 'a fault'); END`)
	held := func() int { return int(mustFloat(t, w.read(`SELECT count(*) FROM item WHERE candidate > 0`))) }
	before := held()
	v := w.visit(t, adminToken)
	v.post("/held/accept", "back", "/held", "confirmed", "1")
	if got := before - held(); got != 100 {
		t.Fatalf("got %d accepted prices of %d, want 100", got, before)
	}
	mustContain(t, v.get("/held").body, "100 held prices are accepted. The others are not, because of an error. Accept them again.")
	w.exec(`DROP TRIGGER full`)
	v.post("/held/accept", "back", "/held", "confirmed", "1")
	if got := held(); got != 0 {
		t.Errorf("got %d held prices after another acceptance, want 0", got)
	}
}

func TestHeld_AcceptButtonsNameTheItem(t *testing.T) {
	w := newWorld(t)
	w.hold()
	v := w.visit(t, adminToken)
	accept := regexp.MustCompile(`action="(/item/accept[^"]*)"`)
	for _, page := range []string{itemURL(730, "Line one\nline two", ""), "/held"} {
		found := accept.FindStringSubmatch(v.get(page).body)
		if found == nil {
			t.Fatalf("%s: got no button that accepts one price, want one", page)
		}
		v.post(html.UnescapeString(found[1]), "back", "/held")
		mustContain(t, v.get("/held").body, "The new price is accepted.")
	}
}

func TestChosen_RefusesFaultySelections(t *testing.T) {
	w := newWorld(t)
	w.hold()
	v := w.visit(t, adminToken)
	before := w.version()
	for text, items := range map[string][]string{
		"Select at least one.": nil, "A selected item is malformed.": {"%zz"}, "name": {"appId=730&name="}, "banana": {"appId=banana&name=x"},
	} {
		if res := v.choose("/items/accept", items, "confirmed", "1"); res.StatusCode == http.StatusInternalServerError {
			t.Errorf("%q: got status %d, want a refusal", items, res.StatusCode)
		}
		if text != "banana" {
			mustContain(t, v.get("/held").body, text)
		}
	}
	if w.version() != before {
		t.Error("a refused selection changed the database, want no change")
	}
	reader := w.visit(t, marketSecret)
	if body := reader.get("/held").body; strings.Contains(body, "checkbox") || strings.Contains(body, "Accept") {
		t.Error("a read-only page has a selection or a button to accept, want none")
	}
}

func TestChosen_RefreshesSelectedItems(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	items := selection(v.get("/missing").body)
	items = append(items, itemQuery(catalog.Key{AppID: catalog.CS2, Name: redline}), itemQuery(catalog.Key{AppID: catalog.CS2, Name: changedItem}))
	mustContain(t, v.choose("/items/refresh", items[:2]).body, "Refresh 2 items?")
	v.choose("/items/refresh", items, "confirmed", "1")
	mustContain(t, v.get("/held").body, "No item of game 730")
	v.choose("/items/refresh", items[1:2])
	mustContain(t, v.get("/held").body, "Run 43 refreshes 1 item.")
	if got := w.read(`SELECT kind || ' ' || requested_by FROM refresh_job WHERE id = 43`); got != "items page" {
		t.Errorf("got the run %q, want the kind items and the requester page", got)
	}
}

func TestMissing_ShowsAttemptsAndOwners(t *testing.T) {
	w := newWorld(t)
	w.exec(`UPDATE missing_price SET attempts = 3`)
	body := w.visit(t, marketSecret).get("/missing").body
	mustContain(t, body, "No Such Item", "<td>trader</td>", `<td class="num">3</td>`, "in ")
	w.exec(`DELETE FROM missing_price`)
	mustContain(t, w.visit(t, marketSecret).get("/missing").body, "No price is missing")
}

func TestItems_SendsFilteredListAsCSV(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	res := v.get("/items?q=sticker+team&maxPrice=0.3&format=csv&sort=-price")
	rows, err := csv.NewReader(strings.NewReader(res.body)).ReadAll()
	if err != nil || !strings.Contains(res.Header.Get("Content-Disposition"), "items.csv") {
		t.Fatalf("got %v, %v, want a CSV file", res.Header, err)
	}
	if len(rows) < 10 || rows[0][1] != "marketHashName" {
		t.Fatalf("got %d rows, the first %q; want a header row and cheap stickers", len(rows), rows[0])
	}
	last := 1e9
	for _, row := range rows[1:] {
		price := mustFloat(t, row[3])
		if !strings.HasPrefix(row[1], "Sticker | Team") || price > 0.3 || price > last || row[4] != "USD" || row[10] == "" {
			t.Errorf("got the row %q after the price %g, want cheap stickers with falling prices", row, last)
		}
		last = price
	}
	if res := v.get("/items?market=none-such&format=csv"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("unknown market: got status %d, want 400", res.StatusCode)
	}
}

func TestItems_FilterByMoveShowsIt(t *testing.T) {
	w := newWorld(t)
	w.exec(`UPDATE price_point SET price = price / 2 WHERE item_id = (SELECT id FROM item WHERE name = $1) AND at < $2`, redline, w.clock.Now().AddDate(0, 0, -1).UnixMicro())
	w.exec(`UPDATE item SET price_updated_at = $2 WHERE name = $1`, redline, w.clock.Now().UnixMicro())
	v := w.visit(t, marketSecret) // the service reads the changed prices
	body := v.get("/items?minMove=50").body
	mustContain(t, body, redline, ">24 h</a>", "&#43;100.00 %", "minDayChange=0.5")
	if links := v.listed("/items?minMove=50"); len(links) != 1 {
		t.Errorf("got %d items, want only the item that moved", len(links))
	}
}

func TestItem_ShowsHistoryAndRecords(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	at := itemURL(730, redline, "")
	body := v.get(at).body
	mustContain(t, body, `class="line main"`, `class="line thin"`, "<title>Aurum</title>", `class="band"`, "Off the scale: Ingot", `href="/users/collector"`, "1 user, 1 piece in 1 row",
		`href="/runs/42">Run 42`, "<th scope=\"row\" class=\"nowrap\">1 day</th>", "90 days <span class=\"soft\">(data for <time data-for datetime=", "/api/prices/items/AK-47%20%7C%20Redline%20%28Field-Tested%29?appId=730", "The item is not listed for sale.")
	mustContain(t, v.get(at+"&range=30d").body, `range=30d#history" aria-current="true"`)
	w.exec(`INSERT INTO price_day (item_id, day, open, high, low, close, changes) SELECT id, $2, 30000000, 36000000, 29000000, 31000000, 4 FROM item WHERE name = $1`,
		redline, w.clock.Now().AddDate(0, 0, -400).Truncate(24*60*60*1e9).UnixMicro())
	mustContain(t, v.get(at+"&range=all").body, "price at the end of each day", "lowest to highest price", "Aug 2025")
	if res := v.get(at + "&range=year"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("range=year: got status %d, want 400", res.StatusCode)
	}
}

// Markets with nearly the same price are all visible.
func TestPlot_DotsDoNotOverlap(t *testing.T) {
	p := &plot{Min: 90, Max: 200}
	for i := range 30 {
		p.Dots = append(p.Dots, dot{Price: 100, Used: i%2 == 0})
	}
	p.Dots = append(p.Dots, dot{Price: 90}, dot{Price: 101}, dot{Price: 200})
	p.stack()
	for i, a := range p.Dots {
		if a.Y < dotHeight/2 || a.Y > p.Height-dotHeight/2 {
			t.Errorf("dot %d: got position %d of %d, want the dot inside the plot", i, a.Y, p.Height)
		}
		for _, b := range p.Dots[:i] {
			ax, bx := mustFloat(t, strings.TrimSuffix(a.X, "%")), mustFloat(t, strings.TrimSuffix(b.X, "%"))
			if a.Y == b.Y && ax < bx+dotWidth-0.01 && bx < ax+dotWidth-0.01 {
				t.Errorf("got dots at %s and %s in the same row, want at least %g between them", a.X, b.X, dotWidth)
			}
		}
	}
}

func TestBrowser_SelectsHeldPrices(t *testing.T) {
	w := newWorld(t)
	w.hold()
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.signIn(adminToken)
	b.open("/held")
	b.do(chromedp.Click(chromedp.CSS("[data-select-all]")))
	if note := b.text("[data-selected]"); note != "13 selected" {
		t.Errorf("got %q, want 13 selected", note)
	}
	b.do(chromedp.Click(chromedp.CSS(".below button")), chromedp.WaitVisible(chromedp.CSS("dialog #question")))
	if question := b.text("dialog #question"); question != "Accept 13 held prices of 13 selected items?" {
		t.Errorf("got the question %q, want it with the count", question)
	}
	b.do(chromedp.Click(chromedp.CSS(`dialog [name="confirmed"]`)))
	b.until("the result", `document.querySelector(".notice")?.textContent.includes("13 held prices are accepted.")`)
	b.quiet()
}

func mustFloat(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64) //nolint:forbidigo // a price for display or a position in percent
	if err != nil {
		t.Fatalf("got %q, want a number", text)
	}
	return v
}
