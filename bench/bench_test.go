package main

import (
	"fmt"
	"testing"
	"time"
)

func TestQuantile_ReturnsValueOfSample(t *testing.T) {
	values := []int{5, 1, 4, 2, 3}
	for percent, want := range map[int]int{0: 1, 50: 3, 99: 4, 100: 5} {
		if got := quantile(values, percent); got != want {
			t.Errorf("percentile %d: got %d, want %d", percent, got, want)
		}
	}
	if got := median([]int{2, 1}); got != 1 {
		t.Errorf("median of two values: got %d, want the lower one", got)
	}
	if got := median[time.Duration](nil); got != 0 {
		t.Errorf("median of no values: got %v, want 0", got)
	}
}

func TestScatter_DistributesRowsEvenly(t *testing.T) {
	for _, names := range []int{1, 3_000, 30_000, 35_000, 300_000} {
		rows := make([]int, names)
		for row := range 2 * names {
			rows[scatter(row, names)]++
		}
		for name, n := range rows {
			if n != 2 {
				t.Fatalf("%d names: name %d has %d rows, want 2", names, name, n)
			}
		}
	}
}

func TestContents_CountsChangedRows(t *testing.T) {
	for _, c := range []struct {
		before, after contents
		want          int
	}{
		{contents{1, 2, 3}, contents{1, 2, 3}, 0},
		{contents{1, 2, 3}, contents{1, 9, 8}, 2},
		{contents{1}, contents{1, 2}, 1},
		{contents{1, 2}, contents{1}, 1},
	} {
		if got := c.before.changed(c.after); got != c.want {
			t.Errorf("%v to %v: got %d rows, want %d", c.before, c.after, got, c.want)
		}
	}
}

func TestCount_SeparatesThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1_000: "1,000", 1_234_567: "1,234,567"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestRefreshWork_ChangesEveryRow(t *testing.T) {
	w := &refreshWork{snapshots: [][]any{make([]any, snapshotWidth)}, items: [][]any{make([]any, itemWidth)}}
	for _, row := range append(w.snapshots, w.items...) {
		for i := range row {
			row[i] = int64(1)
		}
	}
	before := fmt.Sprint(w.snapshots, w.items)
	w.next()
	if fmt.Sprint(w.snapshots, w.items) == before {
		t.Error("got unchanged rows, want all changed")
	}
	if w.snapshots[0][0] != int64(1) || w.items[0][0] != int64(1) {
		t.Error("got a changed key column, want no change")
	}
}
