package catalog

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckName_AcceptsUnusualNames(t *testing.T) {
	for _, name := range []string{
		"x", " ", "AK-47 | Redline (Field-Tested)", "★ StatTrak™ Karambit | Doppler (Factory New)", "Sticker | 壱", "Sticker | 弐",
		"trailing space ", "double  space", "line\nbreak", "tab\t", "a/b", "..", "%2F", "&lt;", "#CSGO_crate_musickit", "'quoted", `"<&>`,
		strings.Repeat("n", MaxName), strings.Repeat("★", MaxName/3),
	} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%.40q) = %v, want nil", name, err)
		}
	}
}

func TestCheckName_RejectsInvalidNames(t *testing.T) {
	for name, want := range map[string]error{
		"":                                ErrNameLength,
		strings.Repeat("n", MaxName+1):    ErrNameLength,
		strings.Repeat("★", MaxName/3+1):  ErrNameLength,
		"\xff":                            ErrNameUTF8,
		"cut off \xe2\x98":                ErrNameUTF8,
		"surrogate \xed\xa0\x80":          ErrNameUTF8,
		"overlong \xc0\xaf":               ErrNameUTF8,
		"\x00":                            ErrNameNUL,
		"AK-47 | Redline\x00 (Fake)":      ErrNameNUL,
		"\xff" + strings.Repeat("n", 600): ErrNameLength,
	} {
		err := CheckName(name)
		if !errors.Is(err, want) || !errors.Is(err, ErrName) {
			t.Errorf("CheckName(%.40q) = %v, want %v that matches ErrName", name, err, want)
		}
	}
}

func TestCheckPhase_AcceptsOnlyDopplerPhases(t *testing.T) {
	for _, phase := range append([]string{""}, Phases...) {
		if err := CheckPhase(phase); err != nil {
			t.Errorf("CheckPhase(%q) = %v, want nil", phase, err)
		}
	}
	for _, phase := range []string{"Phase 5", "phase 1", "Phase 1 ", "Phase1", "ruby", "Rubin", "\x00"} {
		if err := CheckPhase(phase); !errors.Is(err, ErrPhase) {
			t.Errorf("CheckPhase(%q) = %v, want ErrPhase", phase, err)
		}
	}
}

// The database stores responses under these bucket numbers, so they must never change.
func TestBucket_NeverChanges(t *testing.T) {
	for name, want := range map[string]int{
		"":                               69,
		"AK-47 | Redline (Field-Tested)": 73,
		"★ Karambit":                     17,
		"trailing space ":                33,
		"trailing space":                 91,
	} {
		if got := Bucket(name); got != want {
			t.Errorf("Bucket(%q) = %d, want %d", name, got, want)
		}
	}
}

func TestBucket_AllocatesNothing(t *testing.T) {
	name := strings.Repeat("★ Karambit ", 20)
	if n := testing.AllocsPerRun(100, func() { Bucket(name) }); n != 0 {
		t.Errorf("got %v allocations per call, want 0", n)
	}
}

func TestBucket_DistributesRealNamesEvenly(t *testing.T) {
	names := realNames(t)
	var count [Buckets]int
	for _, name := range names {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil", name, err)
		}
		b := Bucket(name)
		if b < 0 || b >= Buckets {
			t.Fatalf("Bucket(%q) = %d, want 0 to %d", name, b, Buckets-1)
		}
		count[b]++
	}
	// The mean is 293 names per bucket, with a standard deviation of 17. The limits are
	// about five standard deviations.
	mean := len(names) / Buckets
	for b, n := range count {
		if n < mean*7/10 || n > mean*13/10 {
			t.Errorf("bucket %d: got %d names, want %d +/- 30%%", b, n, mean)
		}
	}
}

// realNames reads the names of all known CS2 items. It skips the test if the file is
// missing.
func realNames(t *testing.T) []string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "data", "cs2_names_all.csv.gz"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("file ../shared/data/cs2_names_all.csv.gz is missing")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows := csv.NewReader(unzipped)
	if _, err := rows.Read(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, row[0])
	}
}

func TestPhased_MatchesOnlyDopplerFinishes(t *testing.T) {
	for name, want := range map[string]bool{
		"★ Karambit | Doppler (Factory New)":                 true,
		"★ StatTrak™ Bayonet | Gamma Doppler (Minimal Wear)": true,
		"Glock-18 | Gamma Doppler (Factory New)":             true,
		"★ Karambit | Fade (Factory New)":                    false,
		"Sticker | Doppler Poison Frog (Foil)":               false,
	} {
		if got := Phased(name); got != want {
			t.Errorf("Phased(%q) = %v, want %v", name, got, want)
		}
	}
}
