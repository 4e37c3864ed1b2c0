package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay/internal/event"
	"assay/internal/money"
)

const (
	// changesAtOnce limits the price changes of a message, before the filter. A message has up
	// to about 100 KB. A price.changed event with more items is sent as several messages.
	changesAtOnce = 200
	// shownChanges limits the price changes in the text of a message.
	shownChanges = 20
)

// part is an event, or a part of a price.changed event, that becomes one message.
type part struct {
	event.Numbered       // Batch has the items of this part
	first          int64 // number of the first change in it
}

// split divides an event into parts. An event whose first parts are already handled is divided at
// the same places as the whole event.
func split(e *event.Numbered) []part {
	if e.Batch == nil || len(e.Batch.Items) == 0 {
		return []part{{*e, e.Number}}
	}
	var out []part
	first := e.Batch.First()
	for items := range slices.Chunk(e.Batch.Items, changesAtOnce) {
		p := part{*e, first}
		first += int64(len(items))
		p.Number = first - 1
		p.Batch = &event.Batch{Number: p.Number, At: e.Batch.At, Items: items}
		out = append(out, p)
	}
	return out
}

// owned caches the items in the inventories of the filter's users for a session. A nil owned caches
// nothing.
type owned struct{ items map[int64]bool }

func (s *Service) owned(ctx context.Context, h *Webhook, known *owned) (map[int64]bool, error) {
	if known != nil && known.items != nil {
		return known.items, nil
	}
	items, err := ownedItems(ctx, s.o.Store, h.Filter.Users)
	if known != nil {
		known.items = items
	}
	return items, err
}

// message returns the message of a part, or nil if the filter excludes it.
func (s *Service) message(ctx context.Context, h *Webhook, p *part, known *owned) (*message, error) {
	f := &h.Filter
	if p.Batch != nil && len(p.Batch.Items) == 0 { // no price changed, only other figures
		return nil, nil
	}
	if len(f.Events) > 0 && !slices.Contains(f.Events, p.Kind) && (p.Kind != event.PriceChanged || !slices.Contains(f.Events, AlertKind)) {
		return nil, nil
	}
	m := &message{id: fmt.Sprintf("msg_%d_%d", h.ID, p.Number), kind: string(p.Kind), at: p.At, data: p.Data}
	if p.Batch == nil {
		if !f.selects(p.Data) {
			return nil, nil
		}
		m.text = m.kind + ": " + event.Text(p.Kind, p.Data)
		return m, nil
	}
	selected, err := s.selected(ctx, h, p, known)
	if err != nil || len(selected) == 0 {
		return nil, err
	}
	b := &event.Batch{Number: p.Number, At: p.Batch.At, Items: make([]int64, len(p.Batch.Items))}
	var lines []string
	var alerts []alertData
	for i, item := range p.Batch.Items {
		if v := selected[item]; v != nil {
			b.Items[i] = item
			lines = append(lines, s.line(v, f.Alert))
			if f.Alert != nil {
				alerts = append(alerts, alertData{v.app, v.name, v.phase, f.Alert.reason(v), v.after, v.before, v.reference})
			}
		}
	}
	if m.data, err = s.o.Changes(ctx, b); err != nil {
		return nil, err
	}
	title := "Prices changed"
	if f.Alert != nil {
		title = "Price alert"
		if err := m.alert(alerts); err != nil {
			return nil, err
		}
	}
	m.text = title + ":\n" + strings.Join(lines[:min(len(lines), shownChanges)], "\n")
	if more := len(lines) - shownChanges; more > 0 {
		m.text += "\nand " + strconv.Itoa(more) + " more"
	}
	return m, nil
}

// selects reports whether the filter selects an event other than price changes. An event
// without an item passes the filter of items, and an event without a user passes the filter
// of users.
func (f *Filter) selects(data json.RawMessage) bool {
	var d struct {
		UserID, SellerID, BuyerID, MarketHashName string
	}
	if json.Unmarshal(data, &d) != nil {
		return true
	}
	if len(f.Items) > 0 && d.MarketHashName != "" && !slices.Contains(f.Items, d.MarketHashName) {
		return false
	}
	users := slices.DeleteFunc([]string{d.UserID, d.SellerID, d.BuyerID}, func(user string) bool { return user == "" })
	return len(f.Users) == 0 || len(users) == 0 || slices.ContainsFunc(users, func(user string) bool { return slices.Contains(f.Users, user) })
}

// selected returns the price changes of a part that the filter selects, by item.
func (s *Service) selected(ctx context.Context, h *Webhook, p *part, known *owned) (map[int64]*moved, error) {
	f := &h.Filter
	out, err := moves(ctx, s.o.Store, p.Batch.At, p.Batch.Items)
	if err != nil {
		return nil, err
	}
	var items map[int64]bool
	if len(f.Users) > 0 {
		if items, err = s.owned(ctx, h, known); err != nil {
			return nil, err
		}
	}
	if f.Alert != nil {
		if err := readReferences(ctx, s.o.Store, p.Batch.At, f.Alert.window(), out); err != nil {
			return nil, err
		}
	}
	for id, m := range out {
		if len(f.Items) > 0 && !slices.Contains(f.Items, m.name) || len(f.Users) > 0 && !items[id] || !m.atLeast(f.MinChange) || f.Alert != nil && f.Alert.reason(m) == "" {
			delete(out, id)
		}
	}
	return out, nil
}

// atLeast reports whether a price moved by at least the fraction least of the previous price. It is
// always true if the price became known or unknown.
func (m *moved) atLeast(least money.Micro) bool {
	ratio, ok := m.ratio()
	return least == 0 || !ok || max(ratio, -ratio) >= least
}

// ratio returns the move as a fraction of the previous price. ok is false if one of them is unknown.
func (m *moved) ratio() (ratio money.Micro, ok bool) {
	if m.before == 0 || m.after == 0 {
		return 0, false
	}
	return money.Ratio(m.after-m.before, m.before)
}

// line describes a price change for people. The alert may be nil.
func (s *Service) line(m *moved, alert *Alert) string {
	name := m.name
	if m.phase != "" {
		name += " (" + m.phase + ")"
	}
	text := fmt.Sprintf("%s: %s → %s %s", name, known(m.before), known(m.after), s.o.Currency)
	ratio, ok := m.ratio()
	reason, within := "", ""
	if alert != nil {
		reason = alert.reason(m)
	}
	switch reason {
	case AlertAbove:
		text += fmt.Sprintf(" (rose to %s or more)", alert.Above)
		ok = false
	case AlertBelow:
		text += fmt.Sprintf(" (fell to %s or less)", alert.Below)
		ok = false
	case AlertMoved:
		ratio, ok = money.Ratio(m.after-m.reference, m.reference)
		within = fmt.Sprintf(" in %d h", alert.Hours)
	}
	if ok {
		const tenth = money.Scale / 1000 // 0.1 %
		sign, tenths := "+", int64(ratio/tenth)
		if tenths < 0 {
			sign, tenths = "-", -tenths
		}
		text += fmt.Sprintf(" (%s%d.%d %%%s)", sign, tenths/10, tenths%10, within)
	}
	return text
}

func known(price money.Micro) string {
	if price == 0 {
		return "unknown"
	}
	return price.String()
}
