package refresh

import (
	"runtime/debug"
	"testing"
)

func TestGarbage_UsesTheLowestLimitAndRestoresTheUsualOne(t *testing.T) {
	const usual = 100
	before := debug.SetGCPercent(usual)
	defer debug.SetGCPercent(before)
	var g garbage
	check := func(what string, want int) {
		t.Helper()
		got := debug.SetGCPercent(usual)
		debug.SetGCPercent(got)
		if got != want {
			t.Errorf("%s: got GOGC %d, want %d", what, got, want)
		}
	}
	endFirst := g.limit(50)
	check("first work", 50)
	endValidation := g.limit(25)
	check("validation too", 25)
	endSecond := g.limit(50)
	endFirst()
	check("first work ended", 25)
	endValidation()
	check("validation ended", 50)
	endSecond()
	check("all work ended", usual)
	g.limit(200)()
	check("higher limit", usual)

	debug.SetGCPercent(-1)
	end := g.limit(50)
	check("garbage collector off", -1)
	end()
	check("garbage collector still off", -1)
}
