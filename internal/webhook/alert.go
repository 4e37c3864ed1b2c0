package webhook

import (
	"encoding/json"
	"fmt"
	"time"

	"assay/internal/event"
	"assay/internal/money"
)

// AlertKind is the kind of the messages that a webhook with an Alert sends about prices.
const AlertKind event.Kind = "price.alert"

// Reasons of an alert.
const (
	AlertMoved = "moved" // by Change or more within Hours
	AlertAbove = "above" // rose to Above or more
	AlertBelow = "below" // fell to Below or less
)

// MaxAlertHours is the longest window of an Alert.
const MaxAlertHours = 720

// Alert selects the price changes that cross a limit. A limit of zero is not set. Assay stores no
// state of an alert. A change crosses a limit if the new price has reached it and the previous
// price had not. For Change, each of the two prices is compared with the price at the start of its
// own window.
type Alert struct {
	Change money.Micro `json:"change"` // fraction of the price at the start of the window; 0.1 is 10 %
	Hours  int64       `json:"hours"`  // length of the window
	Above  money.Micro `json:"above"`
	Below  money.Micro `json:"below"`
}

func (a *Alert) window() time.Duration { return time.Duration(a.Hours) * time.Hour }

// reason returns why a price change is reported, or "".
func (a *Alert) reason(m *moved) string {
	switch {
	case m.after == 0:
		return ""
	case a.Above > 0 && m.before > 0 && m.before < a.Above && m.after >= a.Above:
		return AlertAbove
	case a.Below > 0 && m.before > a.Below && m.after <= a.Below:
		return AlertBelow
	}
	now, was := a.direction(m.after, m.reference), a.direction(m.before, m.referenceBefore)
	if now != 0 && now != was {
		return AlertMoved
	}
	return ""
}

// direction returns 1 or -1 if a price is at least Change above or below a reference.
func (a *Alert) direction(price, reference money.Micro) int {
	if a.Change == 0 || price == 0 || reference == 0 {
		return 0
	}
	ratio, ok := money.Ratio(price-reference, reference)
	switch {
	case !ok || ratio >= a.Change:
		return 1
	case ratio <= -a.Change:
		return -1
	}
	return 0
}

// alertData is an element of alerts in the data of a message.
type alertData struct {
	AppID          int32       `json:"appId"`
	MarketHashName string      `json:"marketHashName"`
	Phase          string      `json:"phase"`
	Reason         string      `json:"reason"`
	Price          money.Micro `json:"price"`
	Before         money.Micro `json:"before"`
	Reference      money.Micro `json:"reference"` // price at the start of the window
}

// alert changes a message about price changes to a price alert. It adds the member alerts
// to the data.
func (m *message) alert(alerts []alertData) error {
	list, err := json.Marshal(alerts)
	if err != nil {
		return err
	}
	m.kind, m.data = string(AlertKind), fmt.Appendf(nil, `{"alerts":%s,%s`, list, m.data[1:])
	return nil
}
