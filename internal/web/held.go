package web

import (
	"net/http"
	"net/url"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/view"
)

// heldPage lists held prices.
type heldPage struct {
	frame
	List  listState
	Total int64
	Rows  []heldRow
	Self  string
}

// heldRow is a held price.
type heldRow struct {
	itemRef
	view.HeldPrice
	Move string // the held price compared with the published one; empty: none is published
}

// itemRef identifies an item in templates.
type itemRef struct {
	AppID                 int32
	MarketHashName, Phase string
	Query                 string // the item in forms, from itemQuery
}

func refOf(key catalog.Key) itemRef {
	return itemRef{key.AppID, key.Name, key.Phase, itemQuery(key)}
}

func (s *itemPages) held(w http.ResponseWriter, r *http.Request, sess session) error {
	list := listOf(r)
	found, err := s.Items.Held(r.Context(), list.cursor, itemsPerPage)
	if err != nil {
		return err
	}
	total, err := s.Items.HeldCount(r.Context())
	if err != nil {
		return err
	}
	page := heldPage{frame: s.frame("Held prices", "held", &sess), List: list.until(found.NextCursor), Total: total, Self: r.URL.RequestURI()}
	for _, h := range found.Items {
		row := heldRow{itemRef: refOf(h.Key), HeldPrice: h}
		if move, ok := money.Ratio(h.Candidate-h.Price, h.Price); ok && h.Price > 0 {
			row.Move = formatChange(&move)
		}
		page.Rows = append(page.Rows, row)
	}
	return s.show(w, r, "held", page)
}

// missingPage lists the queue of missing prices.
type missingPage struct {
	frame
	List listState
	Rows []missingRow
	Self string
}

// missingRow is an entry of the queue.
type missingRow struct {
	itemRef
	view.MissingPrice
}

func (s *itemPages) missing(w http.ResponseWriter, r *http.Request, sess session) error {
	list := listOf(r)
	found, err := s.Items.Missing(r.Context(), list.cursor, itemsPerPage)
	if err != nil {
		return err
	}
	page := missingPage{frame: s.frame("Missing prices", "missing", &sess), List: list.until(found.NextCursor), Self: r.URL.RequestURI()}
	for _, m := range found.Items {
		page.Rows = append(page.Rows, missingRow{refOf(m.Key), m})
	}
	return s.show(w, r, "missing", page)
}

// chosenItems returns the items that are selected in a form.
func chosenItems(r *http.Request) ([]catalog.Key, error) {
	chosen := r.PostForm["item"]
	if len(chosen) == 0 {
		return nil, fault.New(fault.Invalid, "invalid_parameters", "No item is selected. Select at least one.")
	}
	keys := make([]catalog.Key, 0, len(chosen))
	for _, text := range chosen {
		q, err := url.ParseQuery(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "invalid_item", "A selected item is malformed. Reload the page and select it again.")
		}
		key, err := keyOf(q)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// acceptItems accepts the held prices of the selected items.
func (s *itemPages) acceptItems(w http.ResponseWriter, r *http.Request, sess session) error {
	keys, err := chosenItems(r)
	if err != nil {
		return s.done(w, r, sess, flash{}, err)
	}
	held, err := s.Items.HeldOf(r.Context(), keys)
	if err == nil && held == 0 {
		err = fault.New(fault.Conflict, "no_candidate", "No selected item has a held price. Nothing was accepted.")
	}
	if err != nil {
		return s.done(w, r, sess, flash{}, err)
	}
	ok, err := s.confirmed(w, r, sess, acceptQuestion(held, " of "+numbered(len(keys), "selected item", "selected items")))
	if !ok {
		return err
	}
	accepted, err := s.Engine.AcceptItems(r.Context(), keys)
	note := ""
	if rest := len(keys) - accepted; rest > 0 {
		note = " " + numbered(rest, "selected item has no held price.", "selected items have no held price.")
	}
	return s.accepted(w, r, sess, accepted, note, err)
}

// accepted shows how many held prices an action accepted, and a note. An action that fails may have
// accepted some.
func (s *itemPages) accepted(w http.ResponseWriter, r *http.Request, sess session, n int, note string, err error) error {
	text := numbered(n, "held price is accepted.", "held prices are accepted.")
	if err == nil || n == 0 {
		return s.done(w, r, sess, flash{Good: n > 0, Text: text + note}, err)
	}
	s.Logger.WarnContext(r.Context(), "held prices were accepted only in part", "accepted", n, "error", err)
	return s.done(w, r, sess, flash{Text: text + " The others are not, because of an error. Accept them again."}, nil)
}

// mostAccepted is the maximum number of prices that one form accepts.
const mostAccepted = 5000

// acceptAll accepts all held prices.
func (s *itemPages) acceptAll(w http.ResponseWriter, r *http.Request, sess session) error {
	total, err := s.Items.HeldCount(r.Context())
	if err != nil {
		return err
	}
	if total == 0 {
		return s.done(w, r, sess, flash{Text: "No price is held."}, nil)
	}
	ok, err := s.confirmed(w, r, sess, acceptQuestion(min(total, mostAccepted), ""))
	if !ok {
		return err
	}
	accepted, err := s.Engine.AcceptHeld(r.Context(), mostAccepted)
	return s.accepted(w, r, sess, accepted, "", err)
}

// acceptQuestion returns the question that the user confirms before n held prices are accepted. The
// parameter of names the items that they belong to.
func acceptQuestion(n int64, of string) confirmation {
	return confirmation{
		Question: "Accept " + numbered(n, "held price", "held prices") + of + "?", Text: "They are published and applied to all inventory rows immediately.",
		Button: "Accept " + numbered(n, "price", "prices"),
	}
}

// refreshItems starts a run of the selected items.
func (s *itemPages) refreshItems(w http.ResponseWriter, r *http.Request, sess session) error {
	keys, err := chosenItems(r)
	if err != nil {
		return s.done(w, r, sess, flash{}, err)
	}
	if len(keys) > 1 {
		ok, err := s.confirmed(w, r, sess, confirmation{
			Question: "Refresh " + numbered(len(keys), "item?", "items?"), Text: "Their markets are requested now, even if the prices are fresh.",
			Button: "Refresh " + numbered(len(keys), "item", "items"),
		})
		if !ok {
			return err
		}
	}
	run, err := s.Engine.RefreshItems(r.Context(), keys, sess.author())
	return (&runPages{s.pages}).showStarted(w, r, sess, run, " refreshes "+numbered(len(keys), "item.", "items."), err)
}

// numbered returns an int or int64 with a noun.
func numbered(n any, one, many string) string {
	if count := formatCount(n); count != "1" {
		return count + " " + many
	}
	return "1 " + one
}

// Empty explains a page without held prices.
func (heldPage) Empty() emptyState {
	return emptyState{"No price is held", "A new price with an unusually large change appears here until it is confirmed or accepted."}
}

// Empty explains an empty queue.
func (missingPage) Empty() emptyState {
	return emptyState{"No price is missing", "Items of an inventory that have no price appear here until a market quotes them."}
}
