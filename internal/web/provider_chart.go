package web

import (
	"html/template"
	"math"
	"slices"
	"time"

	"assay/internal/provider"
	"assay/internal/view"
	"assay/internal/web/chart"
)

// latencyChart draws the median and the 95th percentile. Half hours without requests are gaps.
func latencyChart(history []view.HalfHour) template.HTML {
	if !slices.ContainsFunc(history, func(h view.HalfHour) bool { return h.Requests > 0 }) {
		return ""
	}
	p50, p95 := chart.Line{Name: "median", Class: "main"}, chart.Line{Name: "95th percentile", Class: "thin"}
	for _, h := range history {
		low, high := float64(h.P50.Milliseconds()), float64(h.P95.Milliseconds())
		if h.Requests == 0 {
			low, high = math.NaN(), math.NaN()
		}
		p50.Points = append(p50.Points, chart.Point{At: h.At, Value: low})
		p95.Points = append(p95.Points, chart.Point{At: h.At, Value: high})
	}
	return chart.Live(chart.StepOptions{
		Label: "Latency", From: history[0].At, To: endOf(history), Lines: []chart.Line{p95, p50}, Zero: true, Whole: true, Suffix: " ms",
		Format: func(ms float64) string { return formatCount(int64(ms)) + " ms" },
	})
}

func endOf(history []view.HalfHour) time.Time {
	return history[len(history)-1].At.Add(provider.SamplePeriod)
}

// responseChart is the chart of the responses by status, with the lines that it contains.
type responseChart struct {
	Chart template.HTML // empty: no request
	Keys  []chart.Line
}

// columnsOfHistory is the number of columns of statusChart.
const columnsOfHistory = 48

// statusNames are the names of the results in statusChart.
var statusNames = map[provider.SentResult]string{
	provider.ResultOK: "2xx", provider.ResultNotModified: "304", provider.ResultInvalid: "2xx, not usable", provider.ResultLimited: "429",
	provider.ResultRefused: "other 4xx", provider.ResultFailed: "5xx", provider.ResultNoResponse: "no response", provider.ResultCancelled: "cancelled",
}

// statusChart draws the responses by status. If there are more than columnsOfHistory half hours,
// each column combines several of them.
func statusChart(history []view.HalfHour) (out responseChart) {
	each := (len(history) + columnsOfHistory - 1) / columnsOfHistory
	if each == 0 {
		return out
	}
	for _, result := range provider.Results() {
		line, total := chart.Line{Name: statusNames[result], Class: string(result)}, int64(0)
		for part := range slices.Chunk(history, each) {
			sum := int64(0)
			for i := range part {
				sum += part[i].ByResult[result]
			}
			total += sum
			line.Points = append(line.Points, chart.Point{At: part[0].At, Value: float64(sum)})
		}
		if total > 0 {
			out.Keys = append(out.Keys, line)
		}
	}
	if len(out.Keys) > 0 {
		out.Chart = chart.Live(chart.StepOptions{
			Label: "Responses by status", From: history[0].At, To: endOf(history), Lines: out.Keys, Zero: true, Whole: true, Stacked: true,
			Format: func(n float64) string { return formatCount(int64(n)) },
		})
	}
	return out
}
