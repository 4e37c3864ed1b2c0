package chart

import (
	"encoding/json"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// liveChart is the data of a live chart. The script live-chart.js reads it.
type liveChart struct {
	From    int64      `json:"from"` // Unix seconds, as are all times
	To      int64      `json:"to"`
	Form    string     `json:"form"` // of the times of the axis
	Prefix  string     `json:"prefix"`
	Suffix  string     `json:"suffix"`
	Places  int        `json:"places"`
	Stacked bool       `json:"stacked"`
	Ticks   []liveTick `json:"ticks"` // from the highest to the lowest value of the axis
	Lines   []liveLine `json:"lines"`
}

// liveTick is a label of the value axis.
type liveTick struct {
	Value liveValue `json:"value"`
	Text  string    `json:"text"`
}

// liveLine is a line or, if its values do not last, a line of dots.
type liveLine struct {
	Name   string      `json:"name"`
	Class  string      `json:"class"`
	Dots   bool        `json:"dots,omitempty"`
	At     []int64     `json:"at"`
	Values []liveValue `json:"values"`
	Low    []liveValue `json:"low,omitempty"`
	High   []liveValue `json:"high,omitempty"`
}

// liveValue is a value. A gap (NaN) is null in JSON.
type liveValue float64

// MarshalJSON implements json.Marshaler.
func (v liveValue) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(v)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(v), 'f', -1, 64), nil
}

// Live returns the chart of Step with its data, which the page's script draws. Without the script,
// and for screen readers, it is the chart of Step.
func Live(o StepOptions) template.HTML {
	s, ok := o.scale()
	if !ok {
		return Step(o)
	}
	form, _ := timeForm(o.To.Sub(o.From))
	out := liveChart{From: o.From.Unix(), To: o.To.Unix(), Form: form, Prefix: o.Prefix, Suffix: o.Suffix, Places: o.Places, Stacked: o.Stacked}
	for i := range ticks {
		v := s.tick(i)
		out.Ticks = append(out.Ticks, liveTick{liveValue(v), o.format(v)})
	}
	for _, l := range o.Lines {
		line := liveLine{Name: l.Name, Class: l.Class, At: []int64{}, Values: []liveValue{}}
		banded := false
		for _, p := range sorted(l.Points) {
			line.add(p.At, p.Value)
			low, high := math.NaN(), math.NaN()
			if p.banded() {
				low, high, banded = p.Low, p.High, true
			}
			line.Low, line.High = append(line.Low, liveValue(low)), append(line.High, liveValue(high))
		}
		if !banded {
			line.Low, line.High = nil, nil
		}
		out.Lines = append(out.Lines, line)
	}
	for _, d := range o.Dots {
		line := liveLine{Name: d.Name, Class: d.Class, Dots: true}
		line.add(d.At, d.Value)
		out.Lines = append(out.Lines, line)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return Step(o) // a value of an axis is infinite
	}
	// Marshal has escaped the characters <, > and &.
	text := strings.ReplaceAll(string(data), "'", "&#39;")
	return template.HTML(`<div class="live-chart" data-chart='`+text+`'>`) + Step(o) + "</div>" //nolint:gosec // the data is escaped
}

func (l *liveLine) add(at time.Time, v float64) {
	l.At, l.Values = append(l.At, at.Unix()), append(l.Values, liveValue(v))
}
