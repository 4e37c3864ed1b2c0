package web

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/money"
	users "assay/internal/user"
	"assay/internal/view"
	"assay/internal/web/chart"
)

const (
	usersPerPage  = 25 // each total reads all rows of the user
	assetsPerPage = 50
	valueDays     = 400 // maximum days of the chart
)

// usersPage lists users.
type usersPage struct {
	frame
	Users []view.UserSummary
	List  listState
	Empty emptyState
	API   apiCall
}

func (s *userPages) users(w http.ResponseWriter, r *http.Request, sess session) error {
	if r.URL.Query().Has("user") {
		return s.user(w, r, sess)
	}
	list := listOf(r, "q")
	if err := checkSearch(list.Get("q")); err != nil {
		return err
	}
	if r.URL.Query().Get("format") == "csv" {
		return s.usersCSV(w, r, list.Get("q"))
	}
	found, err := s.Users.UserList(r.Context(), list.Get("q"), r.URL.Query().Get("cursor"), usersPerPage)
	if err != nil {
		return err
	}
	page := usersPage{
		frame: s.frame("Users", "users", &sess), Users: found.Items, List: list.until(found.NextCursor),
		Empty: emptyState{"No user yet", "A user is created when the platform pushes an inventory or calls PUT /api/users/{userId}."},
		API:   apiCall{Method: http.MethodGet, Path: "/api/users"},
	}
	if list.Clear() != "" {
		page.Empty = emptyState{"Nothing found", "No user has this text in the id, the Steam id or the display name. Case does not matter."}
	}
	return s.show(w, r, "users", page)
}

// usersCSV sends all users of a list as a file.
func (s *userPages) usersCSV(w http.ResponseWriter, r *http.Request, search string) error {
	read := func(cursor string) (view.Page[view.UserSummary], error) {
		return s.Users.UserList(r.Context(), search, cursor, csvChunk)
	}
	found, err := read("")
	if err != nil {
		return err
	}
	return s.sendCSV(w, r, "users", []string{
		"userId", "steamId", "displayName", "value", "currency", "rows", "unpricedRows", "oldestInventory", "createdAt",
	}, records(found, func(u *view.UserSummary) []string {
		return []string{
			u.UserID, u.SteamID, u.DisplayName, u.Value.String(), string(s.Currency), strconv.FormatInt(u.Rows, 10), strconv.FormatInt(u.Unpriced, 10),
			csvTime(u.SyncedAt), csvTime(&u.CreatedAt),
		}
	}, read))
}

// checkSearch validates the text of a search for users or sellers.
func checkSearch(text string) error {
	if len(text) > users.MaxID || !utf8.ValidString(text) {
		return fault.New(fault.Invalid, "invalid_parameters", "A search must be valid UTF-8 and at most %d bytes long.", users.MaxID)
	}
	return nil
}

// userID returns the ID of the user in the query or the path.
func userID(r *http.Request) (string, error) {
	id := r.PathValue("id")
	if r.URL.Query().Has("user") {
		id = r.URL.Query().Get("user")
	}
	return id, users.CheckAny(id)
}

// userPage shows a user and the user's inventories.
type userPage struct {
	frame
	Of             view.User
	Inventories    []view.UserInventory
	Value          money.Sum
	Rows, Unpriced int64
	Periods        []tab
	Chart          template.HTML // value over time; empty: no day is recorded yet
	Assets         []view.InventoryRow
	List           listState
	Self           string
	Trading        bool // the modules market and wallet are on
	API            apiCall
}

// valuePeriods returns the periods of the chart in days.
func valuePeriods() []int { return []int{30, 90, valueDays} }

func (s *userPages) user(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := userID(r)
	if err != nil {
		return err
	}
	list := listOf(r, "user", "days")
	page := userPage{frame: s.frame("User "+id, "users", &sess), Trading: !s.PricesOnly, Self: r.URL.RequestURI()}
	if page.Of, err = s.Users.User(r.Context(), id); err != nil {
		return err
	}
	if page.Inventories, err = s.Users.Inventories(r.Context(), id); err != nil {
		return err
	}
	if page.Chart, page.Periods, err = s.valueChart(r.Context(), id, list); err != nil {
		return err
	}
	found, err := s.Users.Inventory(r.Context(), id, 0, 0, s.Currency, r.URL.Query().Get("cursor"), assetsPerPage)
	if err != nil {
		return err
	}
	page.Assets, page.Value, page.Rows, page.Unpriced = found.Items, found.TotalValue, found.Rows, found.UnpricedRows
	page.List = list.until(found.NextCursor)
	page.API = apiCall{Method: http.MethodGet, Path: "/api/inventory/" + url.PathEscape(id)}
	return s.show(w, r, "user", page)
}

// valueChart draws the value of the inventories at the end of each day.
func (s *userPages) valueChart(ctx context.Context, id string, list listState) (template.HTML, []tab, error) {
	days, err := strconv.Atoi(list.Get("days"))
	if err != nil || days < 1 || days > valueDays {
		days = valuePeriods()[0]
	}
	var tabs []tab
	for _, n := range valuePeriods() {
		label := strconv.Itoa(n) + " days"
		if n == valueDays {
			label = "All"
		}
		tabs = append(tabs, tab{Label: label, Href: list.With("days", strconv.Itoa(n)), Current: n == days})
	}
	now := s.Now()
	from := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -days)
	found, err := s.Users.Values(ctx, id, from, now, s.Currency, "", valueDays+1)
	if err != nil || len(found.Items) == 0 {
		return "", tabs, err
	}
	points := make([]chart.Point, len(found.Items))
	for i, v := range found.Items {
		points[i].At = v.Day.Add(24 * time.Hour)
		points[i].Value, _ = strconv.ParseFloat(v.ValueDecimal, 64) //nolint:forbidigo // a position in the chart
	}
	return chart.Step(chart.StepOptions{
		Label: "Value of the inventories", From: from, To: now, Zero: true,
		Lines:  []chart.Line{{Name: "Value", Class: "main", Points: points}},
		Format: func(v float64) string { return shortPrice(money.Micro(v*money.Scale), s.Currency) },
	}), tabs, nil
}

// resync updates the inventories of a user: from Steam, or by applying current prices to the last
// push.
func (s *userPages) resync(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := userID(r)
	if err != nil {
		return s.done(w, r, sess, flash{}, err)
	}
	if r.PostFormValue("from") == "steam" {
		message, err := s.pull(r.Context(), id)
		return s.done(w, r, sess, message, err)
	}
	all, err := s.Users.Inventories(r.Context(), id)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.Conflict, "no_inventory", "The user has no inventory yet. Push one, or set the Steam id and sync from Steam.")
	}
	rows := int64(0)
	for i := 0; i < len(all) && err == nil; i++ {
		rows += all[i].Rows
		_, err = s.Syncs.Renew(r.Context(), id, all[i].AppID, all[i].ContextID, time.UnixMicro(1))
	}
	return s.done(w, r, sess, flash{Good: true, Text: "Resynced " + formatCount(rows) + " rows of the last push: they have the current prices, and items without a price are queued."}, err)
}

// pull syncs the stored inventories of a user from Steam. If none is stored, it syncs the default
// inventory.
func (s *userPages) pull(ctx context.Context, id string) (flash, error) {
	all, err := s.Users.Inventories(ctx, id)
	if err != nil {
		return flash{}, err
	}
	places := []steaminv.Place{steaminv.Default()}
	if len(all) > 0 {
		places = nil
	}
	for _, v := range all {
		places = append(places, steaminv.Place{AppID: v.AppID, ContextID: v.ContextID})
	}
	var total inventory.Result
	for _, place := range places {
		got, err := s.Syncs.Pull(ctx, id, place, inventory.Normal)
		if err != nil {
			return flash{}, err
		}
		total.Added, total.Removed, total.Changed = total.Added+got.Added, total.Removed+got.Removed, total.Changed+got.Changed
	}
	return flash{Good: true, Text: fmt.Sprintf("Synced from Steam: %s added, %s removed, %s changed.",
		formatCount(total.Added), formatCount(total.Removed), formatCount(total.Changed))}, nil
}
